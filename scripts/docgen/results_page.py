"""The tables of docs/results.md, in Markdown, from the cells there are; a missing cell is shown as –."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from docgen.results import NAMES, REPRODUCIBLE, CellResult, load_cells, make_command, table_options
from egin_dgl.evaluation.statistics import CONFIDENCE, interval, paired_test
from egin_dgl.reporting.many_runs.paper import PUBLISHED, Published

MISSING = "–"
FAMILY = ("egin", "egin_eps", "egin_c", "egin_c_eps", "egin_e", "egin_e_eps")
REBUILT = (
    "Tox21"  # these datasets were rebuilt from the Tox21 challenge's score set: node labels are coded densely
)
PAPER_FOLDS, PAPER_RATIO = 10, 1 / 9
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Results:
    """Cells by command, and what the tables list: datasets (names by option), models (options), facts about datasets."""

    cells: dict[str, CellResult]
    datasets: dict[str, str]
    models: list[str]
    facts: dict[str, dict]

    @classmethod
    def load(cls, root: Path) -> "Results":
        directory = root / "docs" / "results"
        facts = json.loads((directory / "datasets.json").read_text(encoding="utf-8"))
        return cls(load_cells(directory), *table_options(root), facts)

    @property
    def paper_models(self) -> list[str]:
        return [model for model in self.models if (NAMES[model], "MUTAG") in PUBLISHED]

    def get(self, dataset: str, model: str, cv: str, *others: str, seed: int = 0) -> CellResult | None:
        """A cell with default options but for `others`: seed 0 is reproducible on other processors, further seeds are in the
        arithmetic of a machine."""
        choices = ("false",) if seed else REPRODUCIBLE
        commands = (
            make_command(dataset, model, cv, *others, seed=seed, reproducible=choice) for choice in choices
        )
        return next((self.cells[command] for command in commands if command in self.cells), None)

    def scores(self, dataset: str, model: str, protocol: str, cv: str | None = None) -> list[float] | None:
        """Accuracies of the folds; by default of the cross-validation that the protocol belongs to, see `cv_of`."""
        cell = self.get(dataset, model, cv or cv_of(protocol))
        return cell.accuracy[protocol] if cell else None

    def published(self, dataset: str, model: str) -> Published | None:
        return PUBLISHED.get((NAMES[model], self.datasets[dataset]))

    def label(self, dataset: str) -> str:
        name = self.datasets[dataset].removesuffix("_evaluation")
        return f"{name} (rebuilt)" if name.startswith(REBUILT) else name

    def complete(self, models: Iterable[str], protocol: str) -> list[str]:
        """Datasets for which every one of these models has a result."""
        models = list(models)
        return [d for d in self.datasets if all(self.scores(d, model, protocol) for model in models)]


def cv_of(protocol: str) -> str:
    """`selected` needs validation sets; the others are those of the paper and its code, which have none."""
    return "ten_fold" if protocol == "selected" else "paper"


def percent(scores: Sequence[float] | None, with_std: bool = True) -> str:
    if not scores:
        return MISSING
    mean = f"{100 * np.mean(scores):.1f}"
    return f"{mean} ± {100 * np.std(scores):.1f}" if with_std else mean


def signed(value: float, digits: int = 1) -> str:
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", "−")


def points(difference: float, low: float, high: float) -> str:
    """A difference of accuracies with its interval, in points."""
    return f"{signed(100 * difference)} ({signed(100 * low)} to {signed(100 * high)})"


def difference_to_paper(
    scores: Sequence[float], ratio: float, paper: Published
) -> tuple[float, float, float]:
    """Our mean minus the published one, and its 95 % interval.

    Both means have the corrected variance s² (1/n + test/train); the quantile is that of the fewer folds.
    """
    difference = float(np.mean(scores)) - paper.mean / 100
    ours = np.var(scores, ddof=1) * (1 / len(scores) + ratio)
    theirs = (paper.std / 100) ** 2 * (1 / PAPER_FOLDS + PAPER_RATIO)
    width = stdtrit(min(len(scores), PAPER_FOLDS) - 1, (1 + CONFIDENCE) / 2) * np.sqrt(ours + theirs)
    return difference, difference - float(width), difference + float(width)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """Markdown; the first `texts` columns are aligned to the left, numbers to the right."""
    rules = ["---"] * texts + ["---:"] * (len(header) - texts)
    lines = [" | ".join(row) for row in (header, rules, *rows)]
    return "\n".join(f"| {line} |" for line in lines)


def overview(results: Results) -> str:
    """Both tables of the paper at once: the protocol closest to it, and honest selection."""
    texts = []
    for protocol, what in (
        ("common_epoch", "the paper's protocol (optimistic: the epoch is chosen on the test sets)"),
        ("selected", "the epoch chosen on validation sets"),
    ):
        total = len(results.paper_models) * len(results.datasets)
        found = sum(
            bool(results.scores(d, m, protocol)) for d in results.datasets for m in results.paper_models
        )
        title = f"**{protocol}**, {what}: {found} of {total} cells of the paper's tables."
        texts.append(f"{title} Test accuracy in %, the paper's in brackets.\n")
        names = list(results.datasets)
        for datasets in (names[: len(names) // 2], names[len(names) // 2 :]):
            rows = [
                [NAMES[model], *overview_row(results, datasets, model, protocol)] for model in results.models
            ]
            for bound in ("1-wl", "e-wl"):
                values = (f"{100 * results.facts[d][bound]:.1f}" for d in datasets)
                rows.append([f"bound of {bound.upper()}", *values])
            texts.append(table(["", *map(results.label, datasets)], rows) + "\n")
    return "\n".join(texts)


def overview_row(results: Results, datasets: Iterable[str], model: str, protocol: str) -> list[str]:
    row = []
    for dataset in datasets:
        paper = results.published(dataset, model)
        ours = percent(results.scores(dataset, model, protocol), with_std=False)
        row.append(f"{ours} ({paper.mean})" if paper else ours)
    return row


def per_dataset(results: Results) -> str:
    """A table per dataset: all protocols, the difference to the paper, further metrics, cost."""
    header = ["", "paper", "common_epoch", "difference to the paper", "best_per_fold", "last", "selected"]
    header += ["AUROC", "MCC", "log loss", "parameters", "seconds"]
    texts = []
    for dataset in results.datasets:
        facts = results.facts[dataset]
        lines = [
            f"### {results.label(dataset)}\n",
            f"{facts['graphs']:,} graphs, {facts['classes']} classes, majority {100 * facts['majority']:.1f} %; "
            f"bounds {100 * facts['1-wl']:.1f} % (1-WL) and {100 * facts['e-wl']:.1f} % (E-WL).\n",
            table(header, [dataset_row(results, dataset, model) for model in results.models]),
        ]
        texts.append("\n".join(lines) + "\n")
    return "\n".join(texts)


def dataset_row(results: Results, dataset: str, model: str) -> list[str]:
    paper, cell = results.published(dataset, model), results.get(dataset, model, "paper")
    honest = results.get(dataset, model, "ten_fold")
    ours = results.scores(dataset, model, "common_epoch")
    row = [NAMES[model], f"{paper.mean} ± {paper.std}" if paper else ""]
    row.append(percent(ours))
    row.append(
        points(*difference_to_paper(ours, cell.test_to_train, paper)) if cell and ours and paper else ""
    )
    row += [percent(results.scores(dataset, model, name)) for name in ("best_per_fold", "last", "selected")]
    if honest is None:
        return [*row, *[MISSING] * 5]
    values = (honest.auroc, honest.mcc, honest.log_loss)
    row += [f"{np.mean(scores):.3f}" if scores else MISSING for scores in values]
    return [*row, f"{honest.parameters:,}", f"{honest.seconds:,.0f}"]


def below_paper(results: Results) -> str:
    """Cells of the EGIN family more than one published standard deviation below the published mean."""
    rows, count = [], 0
    for dataset in results.datasets:
        for model in FAMILY:
            paper, cell = results.published(dataset, model), results.get(dataset, model, "paper")
            ours = cell and cell.accuracy["common_epoch"]
            if not (paper and cell and ours):
                continue
            count += 1
            if 100 * np.mean(ours) < paper.mean - paper.std:
                shown = points(*difference_to_paper(ours, cell.test_to_train, paper))
                rows.append(
                    [
                        results.label(dataset),
                        NAMES[model],
                        f"{paper.mean} ± {paper.std}",
                        percent(ours),
                        shown,
                    ]
                )
    title = f"{len(rows)} of {count} cells of the EGIN family, of {len(FAMILY) * len(results.datasets)} in the paper."
    return (
        title
        if not rows
        else f"{title}\n\n{table(['dataset', 'model', 'paper', 'common_epoch', 'difference'], rows, 2)}"
    )


def seeds(results: Results) -> str:
    """Ten-fold means over seeds: their mean and standard deviation."""
    models, rows = ("gin", *FAMILY), []
    for dataset in results.datasets:
        row = [results.label(dataset)]
        for model in models:
            cells = [results.get(dataset, model, "ten_fold", seed=seed) for seed in SEEDS]
            means = [100 * np.mean(cell.accuracy["selected"] or np.nan) for cell in cells if cell]
            spread = f"{np.mean(means):.1f} ± {np.std(means, ddof=1):.1f}" if len(means) > 1 else MISSING
            row.append(spread if len(means) in (0, 1, len(SEEDS)) else f"{spread} ({len(means)} seeds)")
        rows.append(row)
    found = sum(cell.seed > 0 for cell in results.cells.values())
    return f"{found} cells of further seeds.\n\n{table(['', *(NAMES[model] for model in models)], rows)}"


def nested(results: Results) -> str:
    """Nested selection of dimensions against the defaults, on the same folds."""
    rows = []
    for dataset in results.datasets:
        for model in FAMILY:
            grid, default = results.get(dataset, model, "nested"), results.get(dataset, model, "ten_fold")
            chosen = grid and grid.accuracy["selected"]
            if not grid or not chosen:
                continue
            scores, shown = results.scores(dataset, model, "selected"), MISSING
            if default and scores and default.folds == grid.folds:
                test = paired_test(chosen, scores, grid.test_to_train)
                shown = points(test.difference, test.low, test.high)
            (often, count), *_ = Counter(grid.chosen or [MISSING]).most_common(1)
            row = [results.label(dataset), NAMES[model], percent(scores), percent(chosen), shown]
            rows.append([*row, f"{often} ({count} of {len(grid.folds)} folds)"])
    if not rows:
        return "No cell has been computed yet."
    return table(["dataset", "model", "defaults", "nested", "difference", "chosen most often"], rows, 2)


def mean_interval(values: Sequence[float]) -> str:
    """Mean and 95 % interval over datasets, in points."""
    bounds = interval(values, 0)
    if bounds is None:
        return f"{signed(100 * float(np.mean(values)))}" if values else MISSING
    return points(float(np.mean(values)), *bounds)
