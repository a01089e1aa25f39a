"""Which edges an answer rests on: python scripts/explain.py run=FOLDER input=FILE graph=ID"""

from egin_dgl.cli.main import run

if __name__ == "__main__":
    run("explain")
