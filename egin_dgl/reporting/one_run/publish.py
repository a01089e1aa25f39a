"""The files of a finished run: pictures, TensorBoard events and, last, summary.json."""

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.evaluation.history import FoldResult
from egin_dgl.evaluation.summary import Prediction, confusion_counts
from egin_dgl.reporting.one_run.figures import confusion_figure, curves_figure
from egin_dgl.reporting.one_run.prediction_figures import parity_figure, probabilities_figure
from egin_dgl.reporting.one_run.terminal import as_list, choice_name, headline_label, over_folds
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import flatten_settings
from egin_dgl.tasks import TASKS
from egin_dgl.training.tensorboard import log_run, remove_fold_events


def publish(
    run: RunDir,
    summary: dict,
    settings: dict,
    results: Sequence[FoldResult],
    predictions: Sequence[Prediction],
    info: DatasetInfo,
    keep_folds: bool = False,
) -> None:
    """Write the pictures, each as PNG and SVG, and TensorBoard events, then summary.json.

    TensorBoard shows one run; with `keep_folds` each fold as well.
    """
    figures = make_figures(summary, settings, results, predictions, info)
    pictures = {name: run.save_picture(name, figure) for name, figure in figures.items()}
    folds = {path.name: path for path in (run.fold(number).path for number in summary["fold_numbers"])}
    histories = [result.history for result in results]
    log_run(run.path, folds, histories, hyper_parameters(summary, settings), final_metrics(summary), pictures)
    run.finish(summary)
    if not keep_folds:
        remove_fold_events(folds.values())


def make_figures(
    summary: dict,
    settings: dict,
    results: Sequence[FoldResult],
    predictions: Sequence[Prediction],
    info: DatasetInfo,
) -> dict[str, Figure]:
    """Curves, and the pictures of the task."""
    task, histories = TASKS[info.task], [result.history for result in results]
    title = f"{summary['model']} on {summary['dataset']}"
    folds = f"mean ± std {over_folds(summary)}" if len(histories) > 1 else over_folds(summary)
    figures = {"curves": curves_figure(histories, f"{title}, {folds}", settings, chosen_epochs(summary))}
    labels = torch.stack([row.label for row in predictions])
    if "confusion" in task.pictures:
        caption = f"{title}, test sets, {headline_label(summary)}"
        figures["confusion"] = confusion_figure(confusion_counts(results), info.class_names, caption)
    caption = f"{title}, test sets {'pooled ' if len(results) > 1 else ''}{over_folds(summary)}"
    if "probabilities" in task.pictures:
        scaled = torch.stack([task.predict(row.logits, row.temperature) for row in predictions])
        raw = torch.stack([task.predict(row.logits) for row in predictions])
        temperatures = {row.temperature for row in predictions}
        calibration = "not calibrated" if None in temperatures else "calibrated"
        if temperatures == {1.0}:
            calibration = "calibrated (T = 1)"
        names = info.class_names or info.target_names
        figures["probabilities"] = probabilities_figure(scaled, raw, labels, names, calibration, caption)
    if "parity" in task.pictures:
        values = torch.stack([task.predict(row.logits) for row in predictions])
        figures["parity"] = parity_figure(values, labels, info.target_names, caption)
    return figures


def chosen_epochs(summary: dict) -> list[float]:
    """The epoch, or C, of each fold by the headline protocol."""
    return as_list(summary["protocols"][summary["headline"]].get(choice_name(summary), []))


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
    main = summary["metric"]
    found = {f"{main} ({kinds[name]})/{name}": result["mean"] for name, result in results.items()}
    means = {name: value["mean"] for name, value in summary["metrics"].items() if name != main}
    kind = kinds[summary["headline"]]
    return found | {f"{kind}/{name}": mean for name, mean in means.items() if mean is not None}
