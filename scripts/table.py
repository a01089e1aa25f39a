"""One table of any set of runs: python scripts/table.py outputs"""

from egin_dgl.cli.main import run

if __name__ == "__main__":
    run("table")
