"""Colour refinement on the command line: python scripts/ewl.py audit dataset=mutag"""

from egin_dgl.cli.main import run

if __name__ == "__main__":
    run("ewl")
