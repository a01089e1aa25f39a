"""Cells of a table: runs that differ in nothing but seed, fold and what changes no number, joined into one result."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.history import best_validation_record
from egin_dgl.evaluation.metrics import MAIN, METRICS
from egin_dgl.evaluation.protocols import ProtocolResult, apply_protocols, has_epochs
from egin_dgl.evaluation.result import FoldResult
from egin_dgl.evaluation.statistics import interval
from egin_dgl.evaluation.summary import mean_std, test_to_train
from egin_dgl.runs.reader import Run

ABSENT = "–"
# Beside seed and fold: where the data lies is no matter, as its hash is compared instead.
NEUTRAL = (
    *("seed", "cv.fold", "trainer.checkpoint_every", "trainer.fold_workers"),
    *("dataset.root", "dataset.url", "dataset.expect"),
)


@dataclass(frozen=True)
class Cell:
    """One model with one choice of settings on one dataset."""

    model: str
    dataset: str
    runs: tuple[Run, ...]
    settings: dict[str, object]  # flat: model.hidden_dim → 64; optimizer → adam, where Hydra noted it
    results: dict[tuple[int, int], FoldResult]  # by seed and fold, in this order
    expected: int  # folds of a whole cross-validation, times seeds
    repeated: int  # folds that were run more than once; the newest counts

    def value(self, key: str) -> str:
        """Its model, its dataset or one of its settings, as it is written on the command line."""
        setting = {"model": self.model, "dataset": self.dataset}.get(key, self.settings.get(key))
        if setting is None:
            return ABSENT
        return setting if isinstance(setting, str) else json.dumps(setting)

    @property
    def option(self) -> str:
        """The name of its model on the command line."""
        return self.runs[0].options.get("model", "")

    @property
    def seeds(self) -> list[int]:
        return sorted({run.seed for run in self.runs})

    @property
    def complete(self) -> bool:
        return len(self.results) == self.expected

    @property
    def state(self) -> str:
        """In place of a value, or beside it, where folds are missing."""
        if not self.results and any(run.error for run in self.runs):
            return "failed"
        return f"{len(self.results)}/{self.expected} folds"

    @property
    def validation(self) -> bool:
        return bool(self.runs[0].settings["cv"].get("validation"))

    @property
    def test_to_train(self) -> float:
        return test_to_train(lead(self.runs).k, self.validation)

    @property
    def is_kernel(self) -> bool:
        return not all(has_epochs(result.history) for result in self.results.values())

    @cached_property
    def protocols(self) -> dict[str, ProtocolResult | None]:
        return apply_protocols([result.history for result in self.results.values()]) if self.results else {}

    @cached_property
    def validation_score(self) -> float | None:
        """What a search over settings may look at: the mean, over folds, of the best validation score."""
        best = [best_validation_record(result.history).monitor_score for result in self.results.values()]
        return mean_std(best)["mean"] if self.validation else None

    def score(self, protocol: str, metric: str = MAIN.name) -> ProtocolResult | None:
        """A metric at the epochs of a protocol, of the folds where it is defined; None where it is in none."""
        result = self.protocols.get(protocol)
        if result is None or metric == MAIN.name:
            return result
        if METRICS[metric].is_loss and self.is_kernel:  # decision values are no log-probabilities
            return None
        read = [slice(epoch - 1, epoch) for epoch in result.epochs or ()]
        read += [slice(-last, None) for last in result.averaged or ()]  # a protocol has one of the two
        values = [
            float(np.mean([METRICS[metric](logits, fold.test_labels) for logits in fold.test_logits[epochs]]))
            for fold, epochs in zip(self.results.values(), read, strict=True)
        ]
        defined = tuple(value for value in values if value == value)
        return replace(result, per_fold=defined) if defined else None

    def interval(self, score: ProtocolResult) -> tuple[float, float] | None:
        return interval(score.per_fold, self.test_to_train)


def join(runs: Sequence[Run]) -> list[Cell]:
    """Cells in the order in which their first runs come; a run without settings belongs to none."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if run.settings:
            groups.setdefault(json.dumps(identity(run), sort_keys=True), []).append(run)
    # Equal settings on other data would be another cell at the same place.
    check_same("hold {run.dataset} with different data", runs, data_settings, lambda run: run.data_hash)
    return [make_cell(group, runs) for group in groups.values()]


def make_cell(runs: Sequence[Run], fellows: Sequence[Run]) -> Cell:
    # Folds of one seed are parts of one cross-validation, or cannot be joined.
    check_same("have equal settings but other folds", runs, lambda run: run.seed, lambda run: run.folds_hash)
    folds = [((run.seed, fold), run) for run in runs for fold in run.results]
    folds.sort(key=lambda pair: (pair[0], pair[1].finished_at(pair[0][1])))
    newest = dict(folds)  # the last of a fold is kept
    named = [group for group in runs[0].settings if group not in ("model", "dataset")]
    options = {group: runs[0].options[group] for group in named if group in runs[0].options}
    return Cell(
        model=model_name(runs, fellows),
        dataset=next((run.dataset for run in runs if run.data_hash), runs[0].dataset),
        runs=tuple(runs),
        settings=options | identity(runs[0]),
        results={(seed, fold): run.results[fold] for (seed, fold), run in newest.items()},
        expected=lead(runs).whole * len({run.seed for run in runs}),
        repeated=len(folds) - len(newest),
    )


def lead(runs: Sequence[Run]) -> Run:
    """A run that has made its folds, if any has: a folds file may hold another number of them than was asked for."""
    return next((run for run in runs if run.folds_hash), runs[0])


def identity(run: Run) -> dict[str, object]:
    """The settings that make a run what it is."""
    neutral = tuple(f"{name}." for name in NEUTRAL)
    return {key: value for key, value in flat(run.settings).items() if not f"{key}.".startswith(neutral)}


def data_settings(run: Run) -> str:
    chosen = {key: value for key, value in identity(run).items() if key.startswith("dataset.")}
    return json.dumps(chosen, sort_keys=True)


def flat(settings: dict[str, object], prefix: str = "") -> dict[str, object]:
    """Nested settings by their names on the command line, model.hidden_dim → 64; what is null is as good as absent."""
    values: dict[str, object] = {}
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


def check_same(
    problem: str, runs: Iterable[Run], place: Callable[[Run], object], content: Callable[[Run], str | None]
) -> None:
    """Runs that belong at one place must agree, those that have anything there."""
    first: dict[object, Run] = {}
    for run in filter(content, runs):
        before = first.setdefault(place(run), run)
        if content(before) != content(run):
            where, told = f"{before.folder} and {run.folder}", problem.format(run=run)
            raise ConfigError(f"{where} {told}: give one of them only")
