"""`resume=DIR` and `cv=refit run=DIR`: run what a directory records.

A directory is data of unknown origin. Its settings are validated like those of a command, with classes of egin_dgl and
torch only; nothing else in it is used, and its name never reaches Hydra.
"""

import logging
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from egin_dgl.cli.app import train
from egin_dgl.cli.entrypoint import activate
from egin_dgl.cli.overrides import TrainArguments, last_value
from egin_dgl.cli.ranks import set_ranks
from egin_dgl.cli.refit import plan_refit, train_refit
from egin_dgl.cli.sweep import run_in_sweep
from egin_dgl.cli.validation import validate_recorded
from egin_dgl.errors import ConfigError, escape_control
from egin_dgl.files import check_links, storage_errors
from egin_dgl.reporting.many_runs.plan import PlannedJob, print_jobs, print_sweep
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import RunSpec
from egin_dgl.runs.sweep_dir import SweepDir
from egin_dgl.training.parallel.resources import CpuBudget, cpu_budget

log = logging.getLogger(__name__)

FORMAT = "[%(asctime)s][%(name)s][%(levelname)s] - %(message)s"  # as Hydra's default


def resume(arguments: TrainArguments) -> None:
    """Continue the run or sweep in a directory."""
    assert arguments.resume is not None
    run, sweep = RunDir(arguments.resume), SweepDir(arguments.resume)
    if not (run.exists or sweep.exists):
        raise ConfigError(f"{run.path} is not the directory of a run or a sweep")
    if not arguments.trust:
        check_links(run.path)
    if sweep.exists:
        resume_sweep(sweep, arguments)
        return
    if arguments.overrides:
        raise ConfigError(f"{run.path} is a single run: leave out {' '.join(arguments.overrides)}")
    if refit_of := run.read_record().get("refit_of"):
        origin = run.path / refit_of
        if not arguments.trust and origin.resolve() != run.path.resolve().parent:
            again = f"type cv=refit run={refit_of} hydra.run.dir={run.path} again, or add trust=true"
            raise ConfigError(f"{run.path} is a refit of a run elsewhere: {again}")
        run_refit(RunDir(origin), run, None, arguments)
        return
    spec = recorded_spec(run.load_spec(), run.path, arguments)
    if arguments.dry_run:
        print_jobs([PlannedJob(run, spec)], run.path)
        return
    activate(run.path)
    log_to(run)
    with run.lock():
        train(spec, run.path, trust=arguments.trust)


def recorded_spec(spec: RunSpec, directory: Path, arguments: TrainArguments) -> RunSpec:
    spec = validate_recorded(spec, directory, arguments.trust, arguments.config_dir)
    return with_ranks(spec, arguments)


def with_ranks(spec: RunSpec, arguments: TrainArguments) -> RunSpec:
    return replace(spec, settings=set_ranks(spec.settings, arguments.ranks))


def resume_sweep(sweep: SweepDir, arguments: TrainArguments) -> None:
    """Run the unfinished jobs of a sweep, one after the other or with the launcher of this command."""
    record = sweep.load()
    if record.is_search:
        again = f"type its command again with hydra.sweep.dir={sweep.path} to continue it"
        raise ConfigError(f"{sweep.path} holds a search: {again}")
    jobs = [replace(job, spec=recorded_spec(job.spec, sweep.path, arguments)) for job in record.jobs]
    if arguments.dry_run:
        print_sweep(sweep, jobs)
        return
    finished = [sweep.run_dir(job).load_finished(job.spec.settings) is not None for job in jobs]
    unfinished = [number for number, done in enumerate(finished) if not done]
    activate(sweep.path)
    if arguments.overrides and unfinished:
        launch_jobs(sweep, unfinished, arguments)
        return
    for number in unfinished:
        run_recorded_job(sweep, number, arguments)


def run_recorded_job(
    sweep: SweepDir, number: int, arguments: TrainArguments, budget: CpuBudget | None = None
) -> None:
    record = sweep.load()
    job = record.jobs[number]
    run, trust = sweep.run_dir(job), arguments.trust
    spec = recorded_spec(job.spec, sweep.path, arguments)
    log_to(run)
    try:
        run_in_sweep(sweep, run, number, len(record), lambda: train(spec, run.path, budget, trust))
    except Exception as error:
        log.error("the job failed: %s", escape_control(error))


def launch_jobs(sweep: SweepDir, numbers: list[int], arguments: TrainArguments) -> None:
    """Run jobs with a Hydra launcher: a multirun over their numbers, in a directory of its own."""
    path = SweepDir(sweep.path.resolve())

    @hydra.main(version_base="1.3", config_path=None)
    def run_number(cfg: DictConfig) -> None:
        budget = cpu_budget(HydraConfig.get().launcher, str(path.path))
        run_recorded_job(path, cfg.job, arguments, budget)

    # Submitit shares files with other machines, which see the working directory but not /tmp.
    shared = any("submitit" in override for override in arguments.overrides)
    scratch = tempfile.mkdtemp(prefix=".launch_", dir="." if shared else None)
    sys.argv[1:] = [
        "--multirun",
        *(["--config-dir", str(arguments.config_dir)] if arguments.config_dir else []),
        *arguments.overrides,
        f"hydra.sweep.dir={os.path.relpath(scratch) if shared else scratch}",
        "hydra.output_subdir=null",
        f"+job={','.join(map(str, numbers))}",
    ]
    try:
        run_number()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def refit(arguments: TrainArguments) -> None:
    """Train one model on all graphs with the settings of a run, in its directory or in hydra.run.dir."""
    assert arguments.run is not None
    out = last_value(arguments.overrides, "hydra.run.dir")
    run = RunDir(Path(out) if out else arguments.run / "refit")
    run_refit(RunDir(arguments.run), run, last_value(arguments.overrides, "device"), arguments)


def run_refit(origin: RunDir, run: RunDir, device: str | None, arguments: TrainArguments) -> None:
    plan = plan_refit(origin, device, arguments.trust, arguments.config_dir)
    plan = replace(plan, spec=with_ranks(plan.spec, arguments))
    activate(run.path)
    log_to(run)
    with run.lock():
        train_refit(plan, run.path)


def log_to(run: RunDir) -> None:
    """Log to the terminal and to train.log of a run, whose directory is made, as Hydra does."""
    with storage_errors(run.log_file):
        run.path.mkdir(parents=True, exist_ok=True)
        file = logging.FileHandler(run.log_file, encoding="utf-8")
    terminal = logging.StreamHandler(sys.stdout)
    logging.basicConfig(level=logging.INFO, format=FORMAT, handlers=(terminal, file), force=True)
