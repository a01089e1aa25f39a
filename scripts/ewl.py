"""Compare graphs by colour refinement: python scripts/ewl.py audit dataset=mutag"""

from egin_dgl.cli.main import run

if __name__ == "__main__":
    run("ewl")
