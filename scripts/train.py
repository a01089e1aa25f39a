"""Cross-validate a model on a dataset: python scripts/train.py model=egin_e dataset=cuneiform"""

import runpy
import sys
from pathlib import Path

try:
    if __name__ == "__main__":
        # By its path: the package itself loads torch, and `reproducible` is settled before.
        arithmetic = Path(__file__).resolve().parent.parent / "egin_dgl" / "arithmetic.py"
        runpy.run_path(str(arithmetic))["start"](sys.argv[1:])
    import egin_dgl  # noqa: F401
except ImportError as error:
    sys.exit(f"error: {error}")

import hydra
from omegaconf import DictConfig

from egin_dgl.cli import door

CONF = Path(__file__).resolve().parent.parent / "conf"


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="train")
def main(cfg: DictConfig) -> float | None:
    from egin_dgl.cli import (
        app,  # here, because fold workers import this file and need neither plots nor metrics
    )

    return door.guarded(cfg, lambda folder, share: app.train(cfg, folder, share))


if __name__ == "__main__":
    door.enter(main, CONF, "train")
