"""Sweeps: a callback of Hydra composes, validates and records all jobs before the first one starts; each job is one run."""

import itertools
import logging
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra import compose
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from egin_dgl.cli.entrypoint import activate, exit_interrupted, exit_on_error
from egin_dgl.errors import ConfigError, EginError, StorageError, escape_control, one_line
from egin_dgl.files import write_text
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir, SweepJob, SweepRecord
from egin_dgl.training.parallel.signals import handle_signals

log = logging.getLogger(__name__)

MAX_JOBS = 10_000  # of a sweep; more are a typing error


class Record(Callback):
    """Called by Hydra in the process that starts a run or sweep, before Hydra writes to its directory."""

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        run = RunDir(Path(config.hydra.run.dir))
        if is_dry_run(config):
            with exit_on_error():
                print_run(config, run)
                sys.exit()
        if run.exists:
            with exit_on_error(), run.lock():
                from egin_dgl.cli.validation import resolve_settings  # imports torch

                run.check_settings(resolve_settings(config))
        activate(run.path)

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        with exit_on_error():
            if is_dry_run(config):
                print_plan(config)
                sys.exit()
            record_sweep(config)


def is_dry_run(config: DictConfig) -> bool:
    from egin_dgl.options import parse_bool  # imports pydantic

    return bool(parse_bool(config.dry_run))


def record_sweep(config: DictConfig) -> None:
    """Write sweep.json: all jobs of a grid, or the number of trials of a search, before a study is opened there."""
    sweep = SweepDir(Path(config.hydra.sweep.dir))
    trials = OmegaConf.select(config, "hydra.sweeper.n_trials")
    if trials is None:
        sweep.register(SweepRecord(expand_sweep(config)))
    else:
        check_search(config)
        continued = sweep.exists
        sweep.register(SweepRecord([], trials))
        if continued:
            sweep.move_unfinished_aside()
    activate(sweep.path)


def print_run(config: DictConfig, run: RunDir) -> None:
    from egin_dgl.cli.validation import make_spec
    from egin_dgl.reporting.many_runs.plan import PlannedJob, print_jobs  # imports torch

    print_jobs([PlannedJob(run, make_spec(config, config.hydra))], run.path)


def print_plan(config: DictConfig) -> None:
    """Print the jobs of a grid, or the number of trials of a search."""
    from egin_dgl.reporting.many_runs.plan import print_sweep  # imports torch

    sweep = SweepDir(Path(config.hydra.sweep.dir))
    trials = OmegaConf.select(config, "hydra.sweeper.n_trials")
    if trials is None:
        print_sweep(sweep, expand_sweep(config))
    else:
        check_search(config)
        print(
            f"a search of {trials} trials, which it chooses one after the other; in {escape_control(sweep.path)}"
        )


def check_search(config: DictConfig) -> None:
    direction = config.hydra.sweeper.direction
    if not OmegaConf.select(config, "cv.validation"):
        raise ConfigError(
            "a search maximizes the validation score, and this cv has no validation set; use cv=ten_fold"
        )
    if getattr(direction, "name", direction) != "maximize":
        raise ConfigError(
            f"hydra.sweeper.direction must be maximize, not {direction}: of a metric such as rmse, whose smaller values are "
            "better, the search maximizes the negative"
        )
    if "CmaEs" in str(OmegaConf.select(config, "hydra.sweeper.sampler._target_")):
        raise ConfigError(
            "hydra/sweeper/sampler=cmaes would unpickle what it finds in study.db; use hydra/sweeper/sampler=tpe or random"
        )


def search_value(summary: dict) -> float | None:
    """What a search maximizes: the validation score, with a minus where smaller is better."""
    from egin_dgl.evaluation.metrics import METRICS  # imports torch, which has trained by now

    metric, score = METRICS[summary["metric"]], summary["validation_score"]
    if metric.is_loss:
        print(
            f"the search minimizes {metric.name}: Optuna, which maximizes, gets −{metric.name}",
            file=sys.stderr,
        )
    return None if score is None else metric.gain(score)


def expand_sweep(config: DictConfig) -> list[SweepJob]:
    """Compose and validate every point of a grid sweep; a point that cannot run is an error."""
    from egin_dgl.terminal import progress_bar  # imports rich

    hydra = config.hydra
    values = sweep_values(hydra.sweeper.params, hydra.overrides.task)
    jobs = []
    # Hydra takes a quarter of a second to compose one.
    with progress_bar("jobs composed", math.prod(map(len, values))) as set_done:
        for number, point in enumerate(itertools.product(*values)):
            try:
                jobs.append(compose_job(hydra, number, point))
            except EginError as error:
                varied = " ".join(word for word, each in zip(point, values, strict=True) if len(each) > 1)
                job = f"job {number + 1} ({varied})" if varied else "the only job"
                sentence = f"{job}: {one_line(error)}; no job was started"
                raise ConfigError(sentence) from error
            set_done(len(jobs))
    return jobs


def sweep_values(params: Mapping[str, Any] | None, overrides: Sequence[str]) -> list[list[str]]:
    """The overrides of each option that a grid sweep varies, and the only one of the others; `params` are those of its YAML file."""
    values: dict[str, list[str]] = {}
    texts = [f"{key}={value}" for key, value in (params or {}).items()]
    for override in OverridesParser.create().parse_overrides([*texts, *overrides]):
        key, is_swept = override.get_key_element(), override.is_sweep_override()
        if is_swept and not override.is_discrete_sweep():
            raise ConfigError(f"{override.input_line}: a grid takes lists; intervals are for a search")
        each = override.sweep_string_iterator() if is_swept else [override.get_value_element_as_str()]
        values[key] = [f"{key}={value}" for value in itertools.islice(each, MAX_JOBS + 1)]
    if math.prod(map(len, values.values())) > MAX_JOBS:
        raise ConfigError(f"a sweep has at most {MAX_JOBS:,} jobs, and this one has more")
    return list(values.values())


def compose_job(hydra: DictConfig, number: int, point: tuple[str, ...]) -> SweepJob:
    from egin_dgl.cli.validation import make_spec  # imports torch

    overrides = [*hydra.overrides.hydra, f"hydra.job.num={number}", *point]
    cfg = compose(hydra.job.config_name, overrides, return_hydra_config=True)
    return SweepJob(str(Path(cfg.hydra.sweep.subdir)), make_spec(cfg, cfg.hydra))


def run_in_sweep(sweep: SweepDir, run: RunDir, number: int, jobs: int, job: Callable[[], dict]) -> dict:
    """Run one job of many: an error is raised, and written to error.txt, which the table of the sweep shows."""
    print(f"job {number + 1} of {jobs}", file=sys.stderr)
    try:
        with handle_signals(), run.lock():
            summary = job()
    except KeyboardInterrupt as interrupt:
        exit_interrupted(interrupt, sweep.path)
    except Exception as error:
        log.debug("the job failed", exc_info=error)
        try:
            write_text(run.error, one_line(error) + "\n")
        except StorageError as full:
            log.warning("%s: %s", full, one_line(error))
        raise
    run.error.unlink(missing_ok=True)
    return summary
