"""The files of a finished run: figures, TensorBoard events and, last, summary.json."""

from collections.abc import Sequence

import numpy as np

from egin_dgl.evaluation.history import History
from egin_dgl.evaluation.metrics import MAIN
from egin_dgl.reporting.one_run.figures import confusion_figure, curves_figure
from egin_dgl.reporting.one_run.terminal import headline_label, over_folds
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import flatten_settings
from egin_dgl.training.tensorboard import log_run, remove_fold_events


def publish(
    run: RunDir,
    summary: dict,
    settings: dict,
    histories: Sequence[History],
    counts: np.ndarray,
    class_names: Sequence[str],
    keep_folds: bool = False,
) -> None:
    """Write curves.png, confusion.png and events, then summary.json.

    TensorBoard shows one run; with `keep_folds` each fold as well.
    """
    title = f"{summary['model']} on {summary['dataset']}"
    folds_text = f"mean ± std {over_folds(summary)}" if len(histories) > 1 else over_folds(summary)
    figures = {
        "curves": curves_figure(histories, f"{title}, {folds_text}"),
        "confusion": confusion_figure(counts, class_names, f"{title}, test sets, {headline_label(summary)}"),
    }
    pictures = {name: run.save_picture(name, figure) for name, figure in figures.items()}
    folds = {path.name: path for path in (run.fold(number).path for number in summary["fold_numbers"])}
    log_run(run.path, folds, histories, hyper_parameters(summary, settings), final_metrics(summary), pictures)
    run.finish(summary)
    if not keep_folds:
        remove_fold_events(folds.values())


def hyper_parameters(summary: dict, settings: dict) -> dict[str, bool | float | str]:
    """The columns of the HPARAMS tab: all settings, but of the dataset only its name."""
    chosen = {group: values for group, values in settings.items() if group != "dataset"}
    chosen["trainer"] = {name: value for name, value in chosen["trainer"].items() if name != "model"}
    flat = {
        name: value
        for name, value in flatten_settings(chosen).items()
        if isinstance(value, (bool, int, float, str)) and "._" not in name
    }
    return {"model": summary["model"], "dataset": summary["dataset"]} | flat


def final_metrics(summary: dict) -> dict[str, float]:
    """The metrics of the HPARAMS tab: the mean by each protocol, marked if it is optimistic, and the other metrics.

    The tab shows the first five in alphabetical order: these names come before those of curves, the headline first.
    """
    results = {name: result for name, result in summary["protocols"].items() if result is not None}
    kinds = {
        name: "optimistic" if result["optimistic"] else "final" if name == summary["headline"] else "last"
        for name, result in results.items()
    }
    found = {f"{MAIN.name} ({kinds[name]})/{name}": result["mean"] for name, result in results.items()}
    means = {name: value["mean"] for name, value in summary["metrics"].items() if name != MAIN.name}
    kind = kinds[summary["headline"]]
    return found | {f"{kind}/{name}": mean for name, mean in means.items() if mean is not None}
