"""The picture of what edges are worth: scores with bounds, and paired differences with the region of equivalence."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.reporting.edges.study import VARIANTS, EdgeStudy

BOUNDS = {"1-wl": ("|", "#888888", "1-WL bound"), "e-wl": ("D", "#888888", "E-WL bound")}
COLORS = {"matters": "#1b7837", "harms": "#b2182b", "equivalent": "#777777", "undecided": "#2166ac"}


def edges_figure(studies: Sequence[EdgeStudy]) -> Figure:
    """A row per study: test scores on the left, what the model loses on the right."""
    figure = Figure(figsize=(9.5, 0.6 + 2.3 * len(studies)), layout="constrained")
    for (left, right), study in zip(figure.subplots(len(studies), 2, squeeze=False), studies, strict=True):
        draw_scores(left, study)
        draw_worths(right, study)
        for axes in (left, right):
            axes.set_ylim(len(VARIANTS) - 0.5, -0.5)
            axes.set_yticks(range(len(VARIANTS)), [variant.name for variant in VARIANTS], fontsize=9)
            axes.tick_params(axis="x", labelsize=8)
            axes.grid(axis="x", alpha=0.3)
        right.set_yticklabels([])
    return figure


def draw_scores(axes: Axes, study: EdgeStudy) -> None:
    """Scores of folds, their mean, and the bounds of the audit if they are of the same metric."""
    factor = study.unit.factor
    for y, variant in enumerate(VARIANTS):
        if score := study.score(variant):
            folds = factor * np.array(score.per_fold)
            axes.plot(folds, np.full(len(folds), y), "o", color="#92c5de", markersize=3.5)
            axes.plot(factor * score.mean, y, "o", color="#053061", markersize=7)
        audit = study.audits.get(variant.name)
        if audit is None or audit.metric != study.metric:
            continue
        last = {level.method: level.bound for level in audit.levels}
        for method, (marker, color, label) in BOUNDS.items():
            if (bound := last[method]) is not None:
                size = 12 if marker == "|" else 5
                axes.plot(
                    factor * bound, y, marker, color=color, markersize=size, fillstyle="none", label=label
                )
    axes.set_title(study.subject, fontsize=10, loc="left")
    remark = " (smaller is better)" if METRICS[study.metric].is_loss else study.unit.remark
    axes.set_xlabel(f"test {study.metric}{remark}", fontsize=9)
    handles, labels = axes.get_legend_handles_labels()
    if unique := dict(zip(labels, handles, strict=True)):
        axes.legend(unique.values(), unique, fontsize=7, loc="best")


def draw_worths(axes: Axes, study: EdgeStudy) -> None:
    """Mean differences with 95 % intervals; shaded: the region of practical equivalence."""
    factor = study.unit.factor
    axes.axvspan(-factor * study.region, factor * study.region, color="#dddddd", zorder=0)
    axes.axvline(0, color="black", linewidth=0.8)
    for y, variant in enumerate(VARIANTS):
        if variant.name in study.unchanged:
            axes.text(0, y, " not applicable", va="center", fontsize=8, color="#777777")
        if (worth := study.worths.get(variant.name)) is None:
            continue
        color = COLORS.get(study.verdict(variant), "black")
        if worth.low is not None and worth.high is not None:
            axes.plot([factor * worth.low, factor * worth.high], [y, y], color=color, linewidth=2)
        axes.plot(factor * worth.mean, y, "o", color=color, markersize=7)
        axes.annotate(
            study.verdict(variant), (factor * worth.mean, y - 0.28), ha="center", fontsize=7, color=color
        )
    axes.set_xlabel(f"worth{study.unit.name and f' in{study.unit.name}'}, 95 % intervals", fontsize=9)
