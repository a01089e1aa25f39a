"""Cells of a table: runs that differ in nothing but seed, fold and what changes no number, joined into one result."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.history import best_on_validation
from egin_dgl.evaluation.metrics import MAIN, METRICS
from egin_dgl.evaluation.protocols import ProtocolResult, has_epochs, headline, read_by_all
from egin_dgl.evaluation.result import FoldResult
from egin_dgl.evaluation.statistics import interval
from egin_dgl.evaluation.summary import mean_std, test_parts, test_to_train
from egin_dgl.runs.reading import Run

# Beside seed and fold: where the data lies is no matter, as its hash is compared instead.
NEUTRAL = (
    "seed",
    "cv.fold",
    "trainer.checkpoint_every",
    "trainer.workers",
    "dataset.root",
    "dataset.url",
    "dataset.expect",
)


@dataclass(frozen=True)
class Cell:
    """One model with one choice of settings on one dataset."""

    model: str
    dataset: str
    runs: tuple[Run, ...]
    settings: dict[str, Any]  # flat: model.hidden_dim → 64, and optimizer → adam where Hydra noted the option
    results: dict[tuple[int, int], FoldResult]  # by seed and fold, in this order
    expected: int  # folds of a whole cross-validation, times seeds
    repeated: int  # folds that were run more than once; the newest counts

    @property
    def seeds(self) -> list[int]:
        return sorted({run.seed for run in self.runs})

    @property
    def complete(self) -> bool:
        return len(self.results) == self.expected

    @property
    def option(self) -> str:
        return self.runs[0].options.get("model", "")

    @property
    def validation(self) -> bool:
        return bool(self.runs[0].settings["cv"].get("validation"))

    @property
    def test_to_train(self) -> float:
        return test_to_train(lead(self.runs).k, self.validation)

    @property
    def state(self) -> str:
        """In place of a value, or beside it, where folds are missing."""
        if not self.results and any(run.error for run in self.runs):
            return "failed"
        return f"{len(self.results)}/{self.expected} folds"

    @cached_property
    def protocols(self) -> dict[str, ProtocolResult | None]:
        return read_by_all([result.history for result in self.results.values()]) if self.results else {}

    @property
    def is_kernel(self) -> bool:
        return not all(has_epochs(result.history) for result in self.results.values())

    @property
    def headline(self) -> str | None:
        return headline(self.protocols) if self.results else None

    @cached_property
    def validation_score(self) -> float | None:
        """What a search over settings may look at: the mean, over folds, of the best validation score."""
        if not self.validation:
            return None
        return mean_std([best_on_validation(result.history).chosen_by for result in self.results.values()])[
            "mean"
        ]

    def score(self, protocol: str, metric: str = MAIN.name) -> ProtocolResult | None:
        """A metric at the epochs of a protocol, of the folds where it is defined; None where it is in none."""
        result = self.protocols.get(protocol)
        if result is None or metric == MAIN.name:
            return result
        if METRICS[metric].is_loss and self.is_kernel:  # decision values are no log-probabilities
            return None
        folds = list(self.results.values())
        if result.averaged is not None:
            values = [
                mean_of_last(METRICS[metric], *part) for part in zip(folds, result.averaged, strict=True)
            ]
        else:
            values = [METRICS[metric](*part) for part in test_parts(folds, result.epochs)]
        defined = tuple(value for value in values if value == value)
        return replace(result, per_fold=defined) if defined else None

    def interval(self, score: ProtocolResult) -> tuple[float, float] | None:
        return interval(score.per_fold, self.test_to_train)


def mean_of_last(metric, fold: FoldResult, epochs: int) -> float:
    return float(np.mean([metric(logits, fold.test_labels) for logits in fold.test_logits[-epochs:]]))


def join(runs: Sequence[Run]) -> list[Cell]:
    """Cells in the order in which their first runs come; a run without settings belongs to none."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if run.settings:
            groups.setdefault(json.dumps(identity(run), sort_keys=True), []).append(run)
    check_data(runs)
    return [make_cell(group, runs) for group in groups.values()]


def make_cell(runs: Sequence[Run], fellows: Sequence[Run]) -> Cell:
    found: dict[tuple[int, int], Run] = {}
    repeated = 0
    for run in runs:
        for fold in run.results:
            before = found.get((run.seed, fold))
            repeated += before is not None
            if before is None or run.finished_at(fold) >= before.finished_at(fold):
                found[run.seed, fold] = run
    check_folds(runs)
    named = [group for group in runs[0].settings if group not in ("model", "dataset")]
    options = {group: runs[0].options[group] for group in named if group in runs[0].options}
    folds = lead(runs).k * lead(runs).repeats
    return Cell(
        model=model_name(runs, fellows),
        dataset=next((run.dataset for run in runs if run.data_hash), runs[0].dataset),
        runs=tuple(runs),
        settings=options | identity(runs[0]),
        results={key: run.results[key[1]] for key, run in sorted(found.items())},
        expected=folds * len({run.seed for run in runs}),
        repeated=repeated,
    )


def lead(runs: Sequence[Run]) -> Run:
    """A run that has made its folds, if any has: a folds file may hold another number of them than was asked for."""
    return next((run for run in runs if run.folds_hash), runs[0])


def identity(run: Run) -> dict[str, Any]:
    """The settings that make a run what it is; what is null is as good as absent."""
    return {
        key: value
        for key, value in flat(run.settings).items()
        if not any(key == name or key.startswith(f"{name}.") for name in NEUTRAL)
    }


def flat(settings: dict, prefix: str = "") -> dict[str, Any]:
    """Nested settings by their names on the command line, model.hidden_dim → 64; without those that are null."""
    values = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            values |= flat(value, f"{prefix}{key}.")
        elif value is not None:
            values[f"{prefix}{key}"] = value
    return values


def model_name(runs: Sequence[Run], fellows: Sequence[Run]) -> str:
    """The name the model gave itself, or gave itself in the most similar run: a job that failed early knows only its option."""
    mine = runs[0].settings["model"]
    target = mine.get("_target_")
    built = [run for run in fellows if run.data_hash and run.settings["model"].get("_target_") == target]
    if not built:
        return runs[0].model
    return max(built, key=lambda run: sum(run.settings["model"].get(k) == v for k, v in mine.items())).model


def check_data(runs: Sequence[Run]) -> None:
    """Equal settings on other data would be another cell at the same place."""
    first: dict[str, Run] = {}
    for run in (run for run in runs if run.data_hash):
        chosen = {key: v for key, v in identity(run).items() if key.startswith("dataset.")}
        before = first.setdefault(json.dumps(chosen, sort_keys=True), run)
        if before.data_hash != run.data_hash:
            raise ConfigError(
                f"{before.folder} and {run.folder} hold {run.dataset} with different data: give one of them only"
            )


def check_folds(runs: Sequence[Run]) -> None:
    """Folds of one seed are parts of one cross-validation, or cannot be joined."""
    first: dict[int, Run] = {}
    for run in (run for run in runs if run.folds_hash):
        before = first.setdefault(run.seed, run)
        if before.folds_hash != run.folds_hash:
            raise ConfigError(
                f"{before.folder} and {run.folder} have equal settings but other folds: give one of them only"
            )
