"""What are the edges of a dataset worth: python scripts/edges.py dataset=mutag"""

from egin_dgl.cli.main import run

if __name__ == "__main__":
    run("edges")
