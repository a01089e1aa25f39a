"""What a finished run leaves in its folder: pictures, TensorBoard's comparison, and summary.json as the last word."""

from collections.abc import Sequence

import numpy as np

from egin_dgl.evaluation.history import History
from egin_dgl.evaluation.metrics import MAIN
from egin_dgl.reporting.one_run.pictures import confusion_figure, curves_figure
from egin_dgl.reporting.one_run.terminal import headline_label
from egin_dgl.runs.run_folder import RunFolder
from egin_dgl.training.tracking import plain, track_run


def publish(
    run: RunFolder,
    summary: dict,
    settings: dict,
    histories: Sequence[History],
    counts: np.ndarray,
    class_names: Sequence[str],
) -> None:
    """Write curves.png, confusion.png, the run's events and, when all else is there, summary.json."""
    title = f"{summary['model']} on {summary['dataset']}"
    figures = {
        "curves": curves_figure(histories, f"{title}, mean ± std of {len(histories)} folds"),
        "confusion": confusion_figure(counts, class_names, f"{title}, test parts, {headline_label(summary)}"),
    }
    for name, figure in figures.items():
        run.save_picture(name, figure)
    track_run(run.path, histories, hyper_parameters(summary, settings), final_metrics(summary), figures)
    run.end(summary)


def hyper_parameters(summary: dict, settings: dict) -> dict[str, bool | float | str]:
    """What the HPARAMS tab has as columns; of the dataset only its name."""
    chosen = {group: values for group, values in settings.items() if group != "dataset"}
    return {"model": summary["model"], "dataset": summary["dataset"]} | plain(chosen)


def final_metrics(summary: dict) -> dict[str, float]:
    """What the HPARAMS tab compares: each protocol's mean, and the other metrics; optimistic ones are called so."""
    read = {name: result for name, result in summary["protocols"].items() if result is not None}
    marks = {name: "_optimistic" if result["optimistic"] else "" for name, result in read.items()}
    found = {f"test_{MAIN.name}{marks[name]}/{name}": result["mean"] for name, result in read.items()}
    means = {name: value["mean"] for name, value in summary["metrics"].items()}
    mark = marks[summary["headline"]]
    return found | {f"test{mark}/{name}": mean for name, mean in means.items() if mean is not None}
