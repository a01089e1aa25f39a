"""Predict the classes of new graphs with a trained run: python scripts/predict.py run=DIR input=FILE"""

from egin_dgl.cli.main import run

if __name__ == "__main__":
    run("predict")
