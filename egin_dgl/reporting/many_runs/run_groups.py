"""Groups of runs with equal settings: folds and seeds of one model on one dataset, pooled into one result."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.history import FoldResult, best_validation_record
from egin_dgl.evaluation.protocols import ProtocolResult, apply_protocols, has_probabilities
from egin_dgl.evaluation.statistics import interval
from egin_dgl.evaluation.summary import mean_std, test_to_train
from egin_dgl.runs.reader import Run
from egin_dgl.runs.settings import flatten_settings
from egin_dgl.tasks import TASKS, Task

ABSENT = "–"
# Settings in which the runs of a group may differ. The location of the data does not matter: its hash is compared.
IGNORED = (
    *("seed", "cv.fold", "trainer.checkpoint_every", "trainer.fold_workers", "trainer.ranks"),
    *("dataset.root", "dataset.url", "dataset.expect"),
)


@dataclass(frozen=True)
class RunGroup:
    """One model with one choice of settings on one dataset."""

    model: str
    dataset: str
    runs: tuple[Run, ...]
    settings: dict[str, object]  # flat, model.hidden_dim → 64; with the chosen options, optimizer → adam
    results: dict[tuple[int, int], FoldResult]  # by (seed, fold), sorted
    expected: int  # folds of a complete cross-validation, times seeds
    repeated: int  # folds that were run more than once; the newest counts

    def value(self, key: str) -> str:
        """Model, dataset or a setting as on the command line."""
        setting = {"model": self.model, "dataset": self.dataset}.get(key, self.settings.get(key))
        if setting is None:
            return ABSENT
        return setting if isinstance(setting, str) else json.dumps(setting)

    @property
    def option(self) -> str:
        """The name of the model on the command line."""
        return self.runs[0].options.get("model", "")

    @property
    def seeds(self) -> list[int]:
        return sorted({run.seed for run in self.runs})

    @property
    def complete(self) -> bool:
        return len(self.results) == self.expected

    @property
    def state(self) -> str:
        """The text in place of a value, or next to it, if folds are missing."""
        if not self.results and any(run.error for run in self.runs):
            return "failed"
        return f"{len(self.results)}/{self.expected} folds"

    @property
    def validation(self) -> bool:
        return bool(self.runs[0].settings["cv"].get("validation"))

    @property
    def test_to_train(self) -> float:
        return test_to_train(started_run(self.runs).k, self.validation)

    @property
    def test_sets(self) -> dict[tuple[str, int], tuple[str, int]]:
        """What the test sets of each seed are, by dataset and seed: hash and number of folds."""
        started = [run for run in self.runs if run.folds_hash]
        return {(self.dataset, run.seed): (str(run.folds_hash), run.whole) for run in started}

    @property
    def is_kernel(self) -> bool:
        return not all(has_probabilities(result.history) for result in self.results.values())

    @cached_property
    def protocols(self) -> dict[str, ProtocolResult | None]:
        return apply_protocols([result.history for result in self.results.values()]) if self.results else {}

    @cached_property
    def validation_score(self) -> float | None:
        """Mean over folds of the best validation score, by which settings may be selected."""
        best = [best_validation_record(result.history).monitor_score for result in self.results.values()]
        return mean_std(best)["mean"] if self.validation else None

    @property
    def metric(self) -> str | None:
        """The monitored metric; None until a fold is finished."""
        return next((result.history[0].metric for result in self.results.values()), None)

    @property
    def task(self) -> type[Task] | None:
        """The task of the dataset; None until a fold is finished."""
        return next((TASKS[result.task] for result in self.results.values()), None)

    def score(self, protocol: str, metric: str | None = None) -> ProtocolResult | None:
        """A metric, by default the monitored one, at the epochs of a protocol, on the folds where it is defined; None if on none."""
        result, task = self.protocols.get(protocol), self.task
        if result is None or metric in (None, self.metric):
            return result
        function = task.metrics.get(metric) if task and metric else None
        if function is None:
            return None
        if function.needs_probabilities and self.is_kernel:  # decision values are no log-probabilities
            return None
        epochs = [slice(epoch - 1, epoch) for epoch in result.epochs or ()]
        epochs += [slice(-last, None) for last in result.averaged or ()]  # a protocol has one of the two
        values = [
            float(np.mean([function(logits, fold.test_labels) for logits in fold.test_logits[chosen]]))
            for fold, chosen in zip(self.results.values(), epochs, strict=True)
        ]
        defined = tuple(value for value in values if value == value)
        return replace(result, per_fold=defined) if defined else None

    def interval(self, score: ProtocolResult) -> tuple[float, float] | None:
        return interval(score.per_fold, self.test_to_train)


def group_runs(runs: Sequence[Run]) -> list[RunGroup]:
    """Group runs by their settings, in the order of their first runs; runs without settings are left out."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if run.settings:
            groups.setdefault(json.dumps(group_settings(run), sort_keys=True), []).append(run)
    check_equal("hold {run.dataset} with different data", runs, data_settings, lambda run: run.data_hash)
    return [make_group(group, runs) for group in groups.values()]


def number_test_sets(groups: Iterable[RunGroup]) -> list[int]:
    """A number for each group: groups of one dataset with equal numbers were tested on the same graphs for each seed that
    both have. Scores on other test sets are of another task: none of them is the best, and no setting is selected."""
    known: list[dict] = []
    numbers = []
    for group in groups:
        found = group.test_sets
        agreeing = (all(one.get(key, value) == value for key, value in found.items()) for one in known)
        number = next((i for i, agrees in enumerate(agreeing) if agrees), len(known))
        known += [{}] * (number == len(known))
        known[number] = known[number] | found
        numbers.append(number)
    return numbers


def make_group(runs: Sequence[Run], all_runs: Sequence[Run]) -> RunGroup:
    check_equal("have equal settings but other folds", runs, lambda run: run.seed, lambda run: run.folds_hash)
    folds = [((run.seed, fold), run) for run in runs for fold in run.results]
    folds.sort(key=lambda pair: (pair[0], pair[1].finished_at(pair[0][1])))
    newest = dict(folds)
    first = runs[0]
    options = {group: first.options[group] for group in first.settings if group in first.options}
    return RunGroup(
        model=model_name(first, all_runs),
        dataset=next((run.dataset for run in runs if run.data_hash), first.dataset),
        runs=tuple(runs),
        settings=options | group_settings(first),
        results={(seed, fold): run.results[fold] for (seed, fold), run in newest.items()},
        expected=started_run(runs).whole * len({run.seed for run in runs}),
        repeated=len(folds) - len(newest),
    )


def started_run(runs: Sequence[Run]) -> Run:
    """A run that has made its folds, if any: a folds file may hold another number of them than `cv.k`."""
    return next((run for run in runs if run.folds_hash), runs[0])


def group_settings(run: Run) -> dict[str, object]:
    """The flat settings that all runs of a group share."""
    ignored, settings = tuple(f"{name}." for name in IGNORED), flatten_settings(run.settings)
    return {key: value for key, value in settings.items() if not f"{key}.".startswith(ignored)}


def data_settings(run: Run) -> str:
    chosen = {key: value for key, value in group_settings(run).items() if key.startswith("dataset.")}
    return json.dumps(chosen, sort_keys=True)


def model_name(run: Run, all_runs: Sequence[Run]) -> str:
    """The model's name in the run with the most similar model settings: a job that failed early has only its option."""
    settings = run.settings["model"]
    target = settings.get("_target_")
    built = [one for one in all_runs if one.data_hash and one.settings["model"].get("_target_") == target]
    if not built:
        return run.model

    def similarity(other: Run) -> int:
        return sum(other.settings["model"].get(key) == value for key, value in settings.items())

    return max(built, key=similarity).model


def check_equal(
    problem: str, runs: Iterable[Run], key: Callable[[Run], object], content: Callable[[Run], str | None]
) -> None:
    """Raise if two runs with the same key have different contents; runs without content are skipped."""
    first: dict[object, Run] = {}
    for run in filter(content, runs):
        other = first.setdefault(key(run), run)
        if content(other) != content(run):
            what = problem.format(run=run)
            raise ConfigError(f"{other.folder} and {run.folder} {what}: give only one of them")
