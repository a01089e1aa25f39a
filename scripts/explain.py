"""Show which nodes and edges a prediction depends on: python scripts/explain.py run=DIR input=FILE graph=ID"""

from egin_dgl.cli.main import run

if __name__ == "__main__":
    run("explain")
