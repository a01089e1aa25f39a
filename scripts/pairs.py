"""Which pairs of graphs do models distinguish: python scripts/pairs.py model=gin,egin,egin_m"""

from egin_dgl.cli.main import run

if __name__ == "__main__":
    run("pairs")
