"""The table of the pairs of graphs that models distinguish."""

import csv
import io
from collections.abc import Sequence

from egin_dgl.ewl.pairs import CATEGORIES
from egin_dgl.reporting.many_runs.renderers import TextTable
from egin_dgl.training.pair_benchmark import PairResult


def pairs_table(results: Sequence[PairResult]) -> TextTable:
    """A row for each reference and model, and a column for each category."""
    pairs = len({(result.category, result.number) for result in results})
    title = f"Pairs distinguished, of {pairs // len(CATEGORIES)} in each category: untrained / trained"
    lines = [["", *CATEGORIES]]
    for name in dict.fromkeys(result.model for result in results):
        of_model = [result for result in results if result.model == name]
        lines.append([name, *(count_distinguished(of_model, category) for category in CATEGORIES)])
    return TextTable(title, lines, 1, [])


def count_distinguished(results: Sequence[PairResult], category: str) -> str:
    """The number of pairs of a category that are distinguished, untrained and, where models were trained, trained."""
    found = [result for result in results if result.category == category]
    untrained = sum(result.untrained for result in found)
    is_trained = any(result.trained is not None for result in found)
    return (
        f"{untrained} / {sum(result.trained is True for result in found)}" if is_trained else str(untrained)
    )


def pairs_csv(results: Sequence[PairResult]) -> str:
    """A line for each model and pair."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["model", "category", "pair", "untrained", "trained", "distance", "noise"])
    for r in results:
        trained = "" if r.trained is None else int(r.trained)
        numbers = ["" if value != value else f"{value:.3g}" for value in (r.distance, r.noise)]
        writer.writerow([r.model, r.category, r.number, int(r.untrained), trained, *numbers])
    return text.getvalue()
