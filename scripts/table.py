"""Compare runs in one table: python scripts/table.py outputs"""

from egin_dgl.cli.main import run

if __name__ == "__main__":
    run("table")
