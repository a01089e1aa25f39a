"""Cross-validate a model on a dataset: python scripts/train.py model=egin_e dataset=cuneiform"""

from egin_dgl.cli.main import run

if __name__ == "__main__":
    run("train")
