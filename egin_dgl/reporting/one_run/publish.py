"""What a finished run leaves in its folder: pictures, TensorBoard's comparison, and summary.json as the last word."""

from collections.abc import Sequence

import numpy as np

from egin_dgl.evaluation.history import History
from egin_dgl.evaluation.metrics import MAIN
from egin_dgl.reporting.one_run.figures import confusion_figure, curves_figure
from egin_dgl.reporting.one_run.terminal import headline_label, over_folds
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.training.tensorboard import forget_folds, log_run, plain


def publish(
    run: RunDir,
    summary: dict,
    settings: dict,
    histories: Sequence[History],
    counts: np.ndarray,
    class_names: Sequence[str],
    keep_folds: bool = False,
) -> None:
    """Write curves.png, confusion.png, the run's events and, when all else is there, summary.json.

    TensorBoard then shows one run; with `keep_folds` a run for each fold beside it.
    """
    title = f"{summary['model']} on {summary['dataset']}"
    told = f"mean ± std {over_folds(summary)}" if len(histories) > 1 else over_folds(summary)
    figures = {
        "curves": curves_figure(histories, f"{title}, {told}"),
        "confusion": confusion_figure(counts, class_names, f"{title}, test parts, {headline_label(summary)}"),
    }
    pictures = {name: run.save_picture(name, figure) for name, figure in figures.items()}
    folds = {path.name: path for path in (run.fold(number).path for number in summary["fold_numbers"])}
    log_run(run.path, folds, histories, hyper_parameters(summary, settings), final_metrics(summary), pictures)
    run.finish(summary)
    if not keep_folds:
        forget_folds(folds.values())


def hyper_parameters(summary: dict, settings: dict) -> dict[str, bool | float | str]:
    """What the HPARAMS tab has as columns; of the dataset only its name, and nothing twice."""
    chosen = {group: values for group, values in settings.items() if group != "dataset"}
    chosen["trainer"] = {name: value for name, value in chosen["trainer"].items() if name != "model"}
    return {"model": summary["model"], "dataset": summary["dataset"]} | plain(chosen)


def final_metrics(summary: dict) -> dict[str, float]:
    """What the HPARAMS tab compares: each protocol's mean, and the other metrics; optimistic ones are called so.

    The tab shows five at first, in the order of their names: these come before all curves, the honest headline in front.
    """
    read = {name: result for name, result in summary["protocols"].items() if result is not None}
    kinds = {
        name: "optimistic" if result["optimistic"] else "final" if name == summary["headline"] else "last"
        for name, result in read.items()
    }
    found = {f"{MAIN.name} ({kinds[name]})/{name}": result["mean"] for name, result in read.items()}
    means = {name: value["mean"] for name, value in summary["metrics"].items() if name != MAIN.name}
    kind = kinds[summary["headline"]]
    return found | {f"{kind}/{name}": mean for name, mean in means.items() if mean is not None}
