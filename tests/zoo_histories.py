"""python zoo_histories.py FOLDER MODEL… -- OPTION…: train each model for one epoch, in one process that starts as
scripts/train.py does, without tables and figures, which take most of a short run's time."""

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(folder: Path, names: list[str], options: list[str]) -> None:
    from hydra import compose, initialize_config_dir

    for name in names:
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            fit_fold(compose("train", [*options, f"model={name}"]), folder / name)


def fit_fold(cfg, folder: Path) -> None:
    import torch

    from egin_dgl.cli.experiment import make_experiment
    from egin_dgl.cli.validation import resolve_settings
    from egin_dgl.data.splits import make_folds
    from egin_dgl.runs.fold_dir import FoldDir
    from egin_dgl.training.job import FoldJob
    from egin_dgl.training.parallel.resources import CpuBudget
    from egin_dgl.training.parallel.workers import train_folds

    experiment = make_experiment(resolve_settings(cfg))
    dataset = experiment.dataset
    folds = make_folds(dataset.labels.numpy(), cfg.cv.k, cfg.seed, dataset.info.name)
    job = FoldJob(
        fold=0,
        seed=cfg.seed,
        split=folds.split(0, cfg.cv.validation),
        folder=FoldDir(folder, 0),
        train=experiment.train,
        device=torch.device("cpu"),
        recipe=experiment.recipe,
    )
    train_folds(dataset, [job], lambda *event: None, CpuBudget(1))


if __name__ == "__main__":
    module = runpy.run_path(str(ROOT / "egin_dgl" / "reproducibility.py"))
    module["restart_if_needed"](sys.argv[-1].removeprefix("reproducible="))
    divider = sys.argv.index("--")
    main(Path(sys.argv[1]), sys.argv[2:divider], sys.argv[divider + 1 :])
