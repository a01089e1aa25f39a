"""What edges are worth: a model trained on a dataset, and on the same graphs with constant edge features, with edge features
permuted within each graph, rewired, and without edges.

egin edges dataset=mutag
egin edges dataset=csv dataset.path=DIRECTORY model=egin seed=0,1,2
egin edges resume=outputs/multirun/2026-11-16_12-00-00-000000     trains what is unfinished, and shows the table

  region=      differences up to this do not count, in points or in the unit of the metric (default: 1 point, or 1 % of an error)
  resume=      directory of an interrupted study

All other options are those of egin train. Several values, such as model=gin,egin_e, are studied one by one.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from egin_dgl import reproducibility
from egin_dgl.cli.arguments import parse_options
from egin_dgl.cli.config_dirs import compose_config, search_path
from egin_dgl.cli.entrypoint import activate
from egin_dgl.cli.error_messages import check_overrides
from egin_dgl.cli.overrides import LAUNCHER, TrainArguments, parse_arguments, requested_arithmetic
from egin_dgl.errors import ConfigError, TrainingError
from egin_dgl.options import NonNegative, Options
from egin_dgl.runs.run_dir import COMMAND_VARIABLE
from egin_dgl.runs.sweep_dir import SweepDir, SweepJob, SweepRecord

if TYPE_CHECKING:
    from egin_dgl.data.dataset import GraphDataset
    from egin_dgl.reporting.edges.study import EdgeStudy, Variant
    from egin_dgl.runs.settings import Settings


class EdgesOptions(Options):
    region: NonNegative | None = None


@dataclass(frozen=True)
class EdgesArguments:
    region: float | None  # of practical equivalence, as printed; None: the default of the metric
    train: TrainArguments


def main() -> None:
    if {"--help", "-h"} & set(sys.argv):
        print(__doc__)
        return
    check_overrides(sys.argv[1:])
    arguments = parse(sys.argv[1:])
    program = sys.argv[0] if sys.argv[0].startswith("egin ") else f"python {sys.argv[0]}"
    os.environ[COMMAND_VARIABLE] = json.dumps([program, *sys.argv[1:]])
    reproducibility.restart_if_needed(requested_arithmetic(sys.argv[1:]))
    with reproducibility.environment({"HYDRA_FULL_ERROR": "1", "PYTHONSAFEPATH": "1"}):
        study_edges(arguments)


def parse(arguments: Sequence[str]) -> EdgesArguments:
    own = [word for word in arguments if word.startswith("region=")]
    others = [word for word in arguments if word not in own and word not in ("-m", "--multirun")]
    return EdgesArguments(parse_options(EdgesOptions, own).region, parse_arguments(others))


def study_edges(arguments: EdgesArguments) -> None:
    """Train what is not finished, then print and write the tables."""
    from egin_dgl.cli.resume import resume_sweep  # imports torch

    train = arguments.train
    if train.resume is None:
        launcher = [word for word in train.overrides if word.startswith(LAUNCHER)]
        sweep = record_study([word for word in train.overrides if word not in launcher], train)
        train = replace(train, trust=True, overrides=launcher)  # the settings are those of this command
    else:
        sweep = SweepDir(train.resume)
        if not sweep.exists:
            raise ConfigError(f"{sweep.path} is not the directory of a sweep")
    resume_sweep(sweep, train)
    activate(None)  # the tables below are those of this sweep
    unfinished = report_study(sweep, arguments.region, train)
    if unfinished:
        raise TrainingError(
            f"{unfinished} of {len(sweep.load())} jobs failed; resume={sweep.path} runs them again"
        )


def record_study(overrides: list[str], arguments: TrainArguments) -> SweepDir:
    """Write the sweep of all variants that differ from the dataset, for each combination of the given values."""
    import itertools

    from egin_dgl.cli.sweep import sweep_values
    from egin_dgl.cli.validation import make_spec
    from egin_dgl.reporting.edges.study import ORIGINAL, VARIANTS

    paths = search_path(arguments.config_dir)
    typed = [word for word in overrides if not word.startswith("hydra.")]
    own = [word for word in overrides if word not in typed]

    def compose(point: Sequence[str], number: int = 0):
        words = [*paths, *own, f"hydra.job.num={number}", *point]
        return compose_config(words, return_hydra_config=True)

    base = compose([values[0] for values in sweep_values(None, typed)])
    jobs: list[SweepJob] = []
    config_dir = str(arguments.config_dir) if arguments.config_dir else None
    for point in itertools.product(*sweep_values(base.hydra.sweeper.params, typed)):
        original: GraphDataset | None = None
        for variant in VARIANTS:
            cfg = compose([*point, *variant.overrides], len(jobs))
            spec = replace(make_spec(cfg, cfg.hydra), config_dir=config_dir)
            check_study(spec.settings)
            dataset = load_variant(spec.settings)
            original = dataset if variant is ORIGINAL else original
            assert original is not None
            if variant is ORIGINAL or not is_unchanged(original, dataset):
                name = f"{cfg.hydra.sweep.subdir}_{variant.name.replace(' ', '_')}"
                jobs.append(SweepJob(str(Path(name)), spec))
    sweep = SweepDir(Path(base.hydra.sweep.dir))
    sweep.register(SweepRecord(jobs))
    return sweep


def check_study(settings: "Settings") -> None:
    """Refuse options with which variants would not be comparable."""
    if settings["cv"]["group_duplicates"]:
        raise ConfigError(
            "cv.group_duplicates=true gives every variant other folds, as duplicates depend on edges; use the folds of a run "
            "that was trained with it, cv.folds_file=RUN/folds.json"
        )
    if settings["model"]["_target_"].endswith(".MorganForest"):
        raise ConfigError(
            "model=morgan_forest reads SMILES strings, which keep their bonds; use model=ewl_forest"
        )


def load_variant(settings: "Settings") -> "GraphDataset":
    from egin_dgl.cli.experiment import build

    return build(settings, "dataset")


def is_unchanged(original: "GraphDataset", variant: "GraphDataset") -> bool:
    """Whether a variant has the same edges with features that say the same."""
    import torch

    if not (torch.equal(original.src, variant.src) and torch.equal(original.dst, variant.dst)):
        return False
    both = original.edge_feats, variant.edge_feats
    return torch.equal(*both) or all(bool((feats == feats[:1]).all()) for feats in both)


def report_study(sweep: SweepDir, region: float | None, arguments: TrainArguments) -> int:
    """Print and write the tables and the picture; return how many jobs are not finished."""
    from rich.console import Console

    from egin_dgl.files import save_figure, write_text
    from egin_dgl.reporting.edges.figure import edges_figure
    from egin_dgl.reporting.edges.report import studies_csv, study_table, worth_table
    from egin_dgl.reporting.many_runs.renderers import print_line, print_table, to_markdown

    console = Console(emoji=False)
    studies, unfinished = load_studies(sweep, region, arguments)
    tables = [study_table(study) for study in studies]
    tables += [worth_table(studies)] if len(studies) > 1 else []
    for table in tables:
        print_table(table, console)
    write_text(sweep.path / "edges.md", "\n".join(map(to_markdown, tables)))
    write_text(sweep.path / "edges.csv", studies_csv(studies))
    save_figure(sweep.path / "edges", edges_figure(studies))
    print_line(console, f"edges.md, edges.csv, edges.png, edges.svg in {sweep.path}")
    return unfinished


def load_studies(
    sweep: SweepDir, region: float | None, arguments: TrainArguments
) -> tuple[list["EdgeStudy"], int]:
    from egin_dgl.cli.validation import validate_recorded
    from egin_dgl.reporting.edges.study import EdgeStudy, group_studies
    from egin_dgl.reporting.many_runs.run_groups import group_runs
    from egin_dgl.runs.reader import find_runs

    runs = find_runs([sweep.path])
    specs = {
        (sweep.path / job.name).resolve(): validate_recorded(
            job.spec, sweep.path, arguments.trust, arguments.config_dir
        )
        for job in sweep.load().jobs
    }
    studies = []
    for groups in group_studies(group_runs(runs)):
        folder = next(iter(groups.values())).runs[0].folder
        audits, unchanged = audit_variants(specs[folder.resolve()].settings)
        studies.append(EdgeStudy(groups, audits, unchanged, region))
    if not studies:
        raise ConfigError(f"{sweep.path} has no run on a dataset as it is, with which variants are compared")
    return studies, sum(not run.complete for run in runs)


def audit_variants(settings: "Settings") -> tuple[dict, frozenset[str]]:
    """The audits of a dataset and its variants, none of a large one, and the names of variants that change nothing."""
    from egin_dgl.cli.splitting import MAX_EDGES, MAX_GRAPHS
    from egin_dgl.ewl.audit import audit
    from egin_dgl.reporting.edges.study import ORIGINAL, VARIANTS

    datasets = {variant: load_variant(with_variant(settings, variant)) for variant in VARIANTS}
    original = datasets[ORIGINAL]
    same = {v for v in VARIANTS if v is not ORIGINAL and is_unchanged(original, datasets[v])}
    too_large = len(original) > MAX_GRAPHS or len(original.src) > MAX_EDGES
    audited: Iterator[Variant] = iter(()) if too_large else (v for v in VARIANTS if v not in same)
    return {v.name: audit(datasets[v]) for v in audited}, frozenset(v.name for v in same)


def with_variant(settings: "Settings", variant: "Variant") -> "Settings":
    options = {"edge_features": variant.edge_features, "structure": variant.structure}
    return {**settings, "dataset": {**settings["dataset"], **options}}
