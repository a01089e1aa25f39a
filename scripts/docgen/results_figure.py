"""The picture of docs/results.md: per dataset the paper's accuracies, ours, the bound of E-WL and the majority class."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from docgen.results import NAMES
from docgen.results_page import Results
from egin_dgl.evaluation.statistics import interval

COLUMNS = 4
PAPER, OURS, HONEST = (
    "#444444",
    "#0072b2",
    "#d55e00",
)  # of Okabe and Ito, which colour-blind readers can distinguish


def draw_results(results: Results, path: Path) -> None:
    rows = math.ceil(len(results.datasets) / COLUMNS)
    figure = Figure(figsize=(3.1 * COLUMNS + 0.6, 2.75 * rows + 0.7), layout="constrained")
    axes = figure.subplots(rows, COLUMNS, sharey=True).ravel()
    for ax, dataset in zip(axes, results.datasets, strict=False):
        draw_dataset(ax, results, dataset)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=9)
    figure.supxlabel("test accuracy in %", fontsize=10)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def draw_dataset(ax: Axes, results: Results, dataset: str) -> None:
    """A row per model of the paper."""
    models, facts = results.paper_models, results.facts[dataset]
    heights = np.arange(len(models))[::-1]
    style: dict[str, Any] = {"linestyle": "none", "markersize": 4.5, "elinewidth": 0.8}
    ax.axvline(100 * facts["majority"], color="#999999", linestyle=":", label="majority class")
    ax.axvline(100 * facts["e-wl"], color="#009e73", linestyle="--", label="bound of E-WL")
    published = [results.published(dataset, model) for model in models]
    means, stds = (
        np.array([getattr(one, name) if one else np.nan for one in published]) for name in ("mean", "std")
    )
    ax.errorbar(
        means, heights + 0.22, xerr=stds, marker="o", mfc="w", color=PAPER, label="paper ± std", **style
    )
    scores = [results.scores(dataset, model, "common_epoch") or [np.nan] for model in models]
    means, stds = (100 * np.array([function(one) for one in scores]) for function in (np.mean, np.std))
    label = "ours by the paper's protocol ± std"
    ax.errorbar(means, heights, xerr=stds, marker="o", color=OURS, label=label, **style)
    scores = [results.scores(dataset, model, "selected") or [np.nan] for model in models]
    means, spread = 100 * np.array([np.mean(one) for one in scores]), widths(results, dataset)
    label = "ours, selected on validation sets (95 % interval)"
    ax.errorbar(means, heights - 0.22, xerr=spread, marker="D", color=HONEST, label=label, **style)
    ax.set_title(results.label(dataset), fontsize=10)
    ax.set_yticks(heights, [NAMES[model] for model in models], fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    ax.set_ylim(-0.6, len(models) - 0.4)
    left, right = ax.get_xlim()
    ax.set_xlim(left, min(right, 100 + 0.03 * (100 - left)))
    ax.grid(axis="x", alpha=0.25)


def widths(results: Results, dataset: str) -> list[float]:
    """Half the width of the 95 % interval of each model's mean under `selected`, in points."""
    found = []
    for model in results.paper_models:
        cell, scores = results.get(dataset, model, "ten_fold"), results.scores(dataset, model, "selected")
        bounds = interval(scores, cell.test_to_train) if cell and scores else None
        found.append(50 * (bounds[1] - bounds[0]) if bounds else math.nan)
    return found
