"""Predictions of a trained run for new graphs: python scripts/predict.py run=FOLDER input=FILE"""

from egin_dgl.cli.main import run

if __name__ == "__main__":
    run("predict")
