"""The files of a finished run: figures, TensorBoard events and, last, summary.json."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.evaluation.history import FoldResult, History
from egin_dgl.evaluation.summary import confusion_counts
from egin_dgl.reporting.one_run.terminal import headline_label, over_folds
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import flatten_settings
from egin_dgl.training.tensorboard import log_run, remove_fold_events

SPLITS = {"train": ("train", "tab:blue"), "val": ("validation", "tab:orange"), "test": ("test", "tab:green")}
MAX_NAMES = 55  # class names that fit along an axis
MAX_COUNTS = 15  # classes up to which each cell shows its count


def publish(
    run: RunDir,
    summary: dict,
    settings: dict,
    results: Sequence[FoldResult],
    info: DatasetInfo,
    keep_folds: bool = False,
) -> None:
    """Write curves.png, for classes confusion.png, and events, then summary.json.

    TensorBoard shows one run; with `keep_folds` each fold as well.
    """
    title = f"{summary['model']} on {summary['dataset']}"
    histories = [result.history for result in results]
    folds_text = f"mean ± std {over_folds(summary)}" if len(histories) > 1 else over_folds(summary)
    figures = {"curves": curves_figure(histories, f"{title}, {folds_text}")}
    if info.class_names:
        caption = f"{title}, test sets, {headline_label(summary)}"
        figures["confusion"] = confusion_figure(confusion_counts(results), info.class_names, caption)
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
    main = summary["metric"]
    found = {f"{main} ({kinds[name]})/{name}": result["mean"] for name, result in results.items()}
    means = {name: value["mean"] for name, value in summary["metrics"].items() if name != main}
    kind = kinds[summary["headline"]]
    return found | {f"{kind}/{name}": mean for name, mean in means.items() if mean is not None}


def curves_figure(histories: Sequence[History], title: str) -> Figure:
    """Loss and score by epoch, or by the penalty C: mean over folds ± one standard deviation."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    figure.suptitle(title)
    epochs = min(len(history) for history in histories)
    kernel = histories[0][0].C is not None
    steps = [record.C if kernel else record.epoch for record in histories[0][:epochs]]
    labels = {
        "loss": "cross-entropy of decision values" if kernel else "loss",
        "score": histories[0][0].metric,
    }
    for axes, (quantity, label) in zip(figure.subplots(1, 2), labels.items(), strict=True):
        for split, (name, color) in SPLITS.items():
            curves = [[getattr(r, f"{split}_{quantity}") for r in history[:epochs]] for history in histories]
            mean, std = np.mean(curves, axis=0), np.std(curves, axis=0)
            if np.isnan(mean).any():
                continue
            axes.plot(steps, mean, color=color, label=name, marker="o" if kernel or epochs == 1 else None)
            lowest = mean / 10 if quantity == "loss" else -np.inf  # a log axis has no zero
            low = np.maximum(mean - std, lowest)
            axes.fill_between(steps, low, mean + std, color=color, alpha=0.15, linewidth=0)
        axes.set(xlabel="C" if kernel else "epoch", ylabel=label, xscale="log" if kernel else "linear")
        if quantity == "loss":
            axes.set_yscale("log")  # with sum readouts the first losses are a hundred times the last
        axes.grid(alpha=0.3)
        axes.legend()
    return figure


def confusion_figure(counts: np.ndarray, class_names: Sequence[str], title: str) -> Figure:
    """Confusion matrix: true classes in rows, predictions in columns, shaded by the fraction of the row."""
    size = max(4.0, min(12.0, 0.32 * len(counts) + 2))
    figure = Figure(figsize=(size + 0.8, size), layout="constrained")
    axes = figure.subplots()
    fractions = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(fractions, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, shrink=0.8, label="fraction of the true class")
    axes.set(xlabel="predicted class", ylabel="true class", title=title)
    ticks = range(0, len(counts), -(-len(counts) // MAX_NAMES))  # every n-th name where all would overlap
    names = [class_names[number] for number in ticks]
    fontsize = 10 if len(counts) <= MAX_NAMES // 2 else 8
    axes.set_xticks(ticks, names, rotation=90 if len(counts) > MAX_COUNTS else 0, fontsize=fontsize)
    axes.set_yticks(ticks, names, fontsize=fontsize)
    if len(counts) <= MAX_COUNTS:
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if fractions[row, column] > 0.5 else "black"
            axes.text(column, row, str(count), ha="center", va="center", color=color)
    return figure
