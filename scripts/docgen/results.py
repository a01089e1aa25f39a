"""Results of finished runs in small files, docs/results/DATASET.jsonl: one line per cell, the numbers of its folds.

A cell is named by the command that computes it again. Runs of other machines and later days are merged: a cell whose digits
are already in the files stays as it is.
"""

import hashlib
import json
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from omegaconf import OmegaConf

from egin_dgl.cli.config_dirs import compose_config
from egin_dgl.cli.validation import resolve_settings
from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.history import History
from egin_dgl.evaluation.summary import test_to_train
from egin_dgl.files import write_text
from egin_dgl.reporting.edges.study import ORIGINAL
from egin_dgl.runs.fold_dir import read_history
from egin_dgl.runs.reader import walk_runs
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import RunSpec, flatten_settings, result_settings

PROTOCOLS = ("common_epoch", "best_per_fold", "selected", "last")
METRICS = ("auroc", "mcc", "log_loss")  # at the epochs of the headline protocol
REPRODUCIBLE = ("avx2", "any")  # of the cells of seed 0; the first is preferred, as it takes half the time
DECIMALS = 6  # they distinguish any two accuracies on a test set
PROGRAM = "python scripts/train.py"
NAMES = {  # of models in tables, by option
    **{"dgcnn": "DGCNN", "gat": "GAT", "gin": "GIN", "egcn": "EGCN", "egin": "EGIN", "egin_eps": "EGIN-ε"},
    **{"egin_c": "EGIN-C", "egin_c_eps": "EGIN-C-ε", "egin_e": "EGIN-E", "egin_e_eps": "EGIN-E-ε"},
    **{"egin_m": "EGIN-M", "gine": "GINE", "majority": "Majority", "mlp_bag": "MLP on bags"},
    **{"ewl_kernel": "E-WL kernel", "ewl_forest": "E-WL forest"},
}

# Arguments of a command that are not options of a cell: its name, what it was a job of, and what changes no result.
NOT_OTHERS = (
    *("dataset=", "model=", "cv=", "seed=", "reproducible="),
    *("experiment=", "hydra", "device=", "trainer.fold_workers=", "fold_curves="),
    *ORIGINAL.overrides,
)

Scores = list[float] | None


@dataclass(frozen=True)
class CellResult:
    """One cross-validation; scores of folds in the order of `folds`."""

    command: str
    dataset: str
    model: str  # as in tables
    seed: int
    commit: str  # of the code that trained it
    versions: dict[str, str]
    processor: str
    data: str  # first digits of the SHA-256 of the dataset
    digits: str  # first digits of the SHA-256 of losses and scores of all epochs
    parameters: int
    seconds: float  # of the whole run
    test_to_train: float  # ratio of the sizes of test and training set
    folds: list[int]
    accuracy: dict[str, Scores]  # by protocol
    auroc: Scores
    mcc: Scores
    log_loss: Scores
    chosen: list[str] | None = None  # settings of each fold, of a nested cross-validation


def make_command(
    dataset: str, model: str, cv: str, *others: str, seed: int = 0, reproducible: str = "avx2"
) -> str:
    words = [f"dataset={dataset}", f"model={model}", f"cv={cv}", *sorted(others)]
    words += [f"seed={seed}"] if seed else []
    words += [f"reproducible={reproducible}"] if reproducible != "false" else []
    return f"{PROGRAM} {shlex.join(words)}"


def command_of(spec: RunSpec) -> str:
    """The command of one cell, whatever sweep or experiment it was a job of."""
    others = [word for word in spec.overrides if not word.startswith(NOT_OTHERS)]
    groups = [spec.choices[group] for group in ("dataset", "model", "cv")]
    settings = spec.settings
    return make_command(
        *groups, *others, seed=settings["seed"], reproducible=str(settings["reproducible"]).lower()
    )


def check_command(command: str, spec: RunSpec, path: Path) -> None:
    """Refuse a run whose options are not those of its command: an experiment may set others."""
    composed = resolve_settings(compose_config(shlex.split(command)[2:]))
    now, then = (flatten_settings(result_settings(settings)) for settings in (composed, spec.settings))
    if differing := sorted(key for key in now.keys() & then.keys() if now[key] != then[key]):
        raise ConfigError(f"{path}: {command} has other values of {', '.join(differing)} than the run")


def hash_digits(histories: Iterable[History]) -> str:
    """First digits of a hash of every loss and score, in full precision; times are left out."""
    rows = [
        repr((record.epoch, record.train_loss, record.val_loss, record.test_loss, record.test_score))
        for history in histories
        for record in history
    ]
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]


def find_commit(path: Path) -> str:
    command = ["git", "-C", str(path), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ConfigError(f"{path} is in no git repository: give the commit that trained it by --commit")
    return done.stdout.strip()


def read_cell(path: Path, commit: str) -> CellResult | None:
    """The cell of a run directory; None if the run is unfinished."""
    run = RunDir(path)
    record = run.read_record()
    spec = RunSpec.from_json(record)
    summary = run.load_finished(spec.settings)
    if summary is None:
        return None
    if summary["metric"] != "accuracy":
        raise ConfigError(f"{path} monitors {summary['metric']}: the tables are of accuracy")
    histories = [read_history(run.fold(number).history) for number in summary["fold_numbers"]]
    accuracy = {name: summary["protocols"][name] for name in PROTOCOLS}
    metrics = {name: round_scores(summary["metrics"][name]["per_fold"]) for name in METRICS}
    chosen = summary.get("chosen")
    return CellResult(
        command=command_of(spec),
        dataset=summary["dataset"],
        model=summary["model"],
        seed=summary["seed"],
        commit=commit,
        versions={name: version.partition("+")[0] for name, version in record["versions"].items()},
        processor=record["arithmetic"]["processor"],
        data=record["data_sha256"][:16],
        digits=hash_digits(histories),
        parameters=summary["parameters"],
        seconds=round(summary["seconds"], 1),
        test_to_train=round(test_to_train(summary["k"], spec.settings["cv"]["validation"]), DECIMALS),
        folds=summary["fold_numbers"],
        accuracy={
            name: round_scores(found["per_fold"]) if found else None for name, found in accuracy.items()
        },
        **metrics,
        chosen=[shlex.join(f"{key}={value}" for key, value in one.items()) for one in chosen]
        if chosen
        else None,
    )


def round_scores(scores: Sequence[float] | None) -> Scores:
    return None if scores is None or None in scores else [round(score, DECIMALS) for score in scores]


def load_cells(directory: Path) -> dict[str, CellResult]:
    """All cells of a directory by command."""
    cells = [
        CellResult(**json.loads(line))
        for path in sorted(directory.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return {cell.command: cell for cell in cells}


def export_runs(sweeps: Sequence[Path], directory: Path, commit: str | None = None) -> tuple[int, int]:
    """Merge finished runs in and below `sweeps` into the files of `directory`; return how many are new, and how many there are."""
    cells = load_cells(directory)
    new = 0
    for sweep in sweeps:
        if not sweep.is_dir():
            raise ConfigError(f"{sweep}: no such directory")
        code = commit or find_commit(sweep)
        for path in walk_runs(sweep, set()):
            cell = read_cell(path, code)
            if cell is None or (cell.command in cells and cells[cell.command].digits == cell.digits):
                continue
            check_command(cell.command, RunDir(path).load_spec(), path)
            cells[cell.command] = cell
            new += 1
    save_cells(cells.values(), directory)
    return new, len(cells)


def save_cells(cells: Iterable[CellResult], directory: Path) -> None:
    """Write a file per dataset, its cells in the order of their models, protocols and seeds."""
    options = list(NAMES)
    files: dict[str, list[tuple[tuple, str]]] = {}
    for cell in cells:
        dataset, model, *others = (word.partition("=")[2] for word in shlex.split(cell.command)[2:])
        place = options.index(model) if model in options else len(options)
        line = json.dumps(asdict(cell), ensure_ascii=False)
        files.setdefault(dataset, []).append(((place, cell.seed, others), line))
    for dataset, lines in files.items():
        text = "".join(f"{line}\n" for _, line in sorted(lines))
        write_text(directory / f"{dataset}.jsonl", text)


def table_options(root: Path) -> tuple[dict[str, str], list[str]]:
    """Datasets of the paper's tables (names by option) and models, as their experiment lists them."""
    params = OmegaConf.load(root / "conf" / "experiment" / "paper_tables.yaml").hydra.sweeper.params
    datasets, models = (str(params[key]).replace(" ", "").split(",") for key in ("dataset", "model"))
    files = {name: OmegaConf.load(root / "conf" / "dataset" / f"{name}.yaml") for name in datasets}
    return {name: str(file.name) for name, file in files.items()}, models
