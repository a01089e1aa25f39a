"""The JSON files of run and sweep directories as types, checked whenever a file is read; further entries are allowed."""

import json
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import NotRequired, TypedDict  # pydantic refuses typing's before Python 3.12

from egin_dgl.errors import ConfigError
from egin_dgl.runs.json_files import CHECKSUM, json_checksum

Number: TypeAlias = float | None
Numbers: TypeAlias = float | list[float]  # one number where all folds agree
Options: TypeAlias = dict[str, Any]


def inside(name: str) -> str:
    place = Path(name)
    if place.is_absolute() or not place.parts or ".." in place.parts:
        raise ValueError(f"{name!r} is not a directory inside that of the sweep")
    return name


def known_metric(name: str) -> str:
    from egin_dgl.evaluation.metrics import METRICS  # imports torch

    if name not in METRICS:
        raise ValueError(f"{name!r} is not a metric")
    return name


MetricName: TypeAlias = Annotated[str, AfterValidator(known_metric)]


@with_config(ConfigDict(strict=True, extra="allow"))
class Entries(TypedDict):
    """Base of all: types are exact, further entries are kept."""


class Cv(Entries, total=False):
    k: Annotated[int, Field(ge=1, le=100_000)]
    repeats: Annotated[int, Field(ge=1, le=1000)]
    fold: int | list[int] | None
    validation: bool
    holdout: bool


class RunSettings(Entries):
    """Every option of a run; the values of groups are validated by `cli.validation` before they are used."""

    seed: int
    model: Options
    dataset: Options
    optimizer: Options
    scheduler: Options
    trainer: Options
    ewl: Options
    cv: Cv


class SpecRecord(Entries):
    settings: RunSettings
    references: dict[str, str]
    overrides: list[str]
    choices: dict[str, str]
    config_dir: str | None


class RunRecord(SpecRecord):
    """run.json"""

    model: str
    dataset: str
    data_sha256: str | None
    refit_of: NotRequired[str]
    ranks: NotRequired[Annotated[list[Annotated[int, Field(ge=1, le=1024)]], Field(min_length=1)]]
    command: NotRequired[list[str]]


class JobRecord(SpecRecord):
    name: Annotated[str, AfterValidator(inside)]


class SweepFile(Entries):
    """sweep.json"""

    jobs: list[JobRecord]
    trials: int | None


class FoldsFile(Entries):
    """folds.json; for each fold the numbers of its graphs"""

    k: Annotated[int, Field(ge=1, le=100_000)]
    folds: list[list[int]]


class ProtocolEntry(Entries):
    mean: float
    std: float
    interval: tuple[float, float] | None
    per_fold: list[float]
    optimistic: bool
    epoch: NotRequired[Numbers]
    averaged: NotRequired[Numbers]
    C: NotRequired[Numbers]


class MetricEntry(Entries):
    mean: Number
    std: Number
    per_fold: list[Number] | None


class RefitEntry(Entries):
    of: str
    graphs: int
    epochs: int | None
    C: Number
    chosen: Options
    temperature: Number


class CalibrationEntry(Entries):
    temperature: Annotated[float, Field(gt=0, lt=1e6)]


class Calibrated(Entries):
    """summary.json, of which only this is needed"""

    calibration: NotRequired[CalibrationEntry | None]


class ConformalRecord(Entries):
    """Scores of test graphs for each target, see `evaluation.conformal`"""

    graphs: list[Annotated[int, Field(ge=0)]]
    scores: list[Annotated[list[float], Field(max_length=10_000)]]
    level: float
    coverage: list[Number]


def has_scores(record: ConformalRecord) -> ConformalRecord:
    """Every target has as many scores as graphs, or some of them."""
    if [bool(graphs) for graphs in record["graphs"]] != [bool(scores) for scores in record["scores"]]:
        raise ValueError("the scores of a target are missing")
    if any(len(scores) > graphs for scores, graphs in zip(record["scores"], record["graphs"], strict=True)):
        raise ValueError("a target has more scores than graphs")
    return record


Conformal = Annotated[ConformalRecord, AfterValidator(has_scores)]


class WithConformal(Entries):
    """summary.json, of which only this is needed"""

    conformal: NotRequired[Conformal | None]


class Summary(Entries):
    """summary.json"""

    model: str
    dataset: str
    seed: int
    parameters: int
    task: str
    seconds: float
    device: str
    notes: list[str]
    folds: int
    metrics: dict[MetricName, MetricEntry]
    validation_score: Number
    conformal: NotRequired[Conformal | None]
    files: dict[str, int]  # checksum of each file that the run vouches for


@with_config(ConfigDict(strict=True, extra="forbid"))
class Protocols(TypedDict):
    selected: ProtocolEntry | None
    common_epoch: ProtocolEntry | None
    best_per_fold: ProtocolEntry | None
    last: ProtocolEntry | None
    last_20: ProtocolEntry | None


class CrossValidation(Summary):
    headline: Literal["selected", "common_epoch"]
    protocols: Protocols
    k: int
    holdout: bool
    baseline: Number  # score of the best constant prediction
    metric: MetricName  # the monitored one, of protocols and validation_score
    targets: NotRequired[dict[str, dict[MetricName, MetricEntry]]]  # metrics of each of several targets
    chosen: NotRequired[list[Options]]
    calibration: CalibrationEntry | None


class RefitSummary(Summary):
    headline: Literal["refit"]
    refit: RefitEntry


def has_headline(summary: CrossValidation) -> CrossValidation:
    if summary["protocols"][summary["headline"]] is None:
        raise ValueError("the headline has no result")
    return summary


RunSummary = Annotated[CrossValidation, AfterValidator(has_headline)]


@cache
def adapter(schema: Any) -> TypeAdapter:
    return TypeAdapter(schema)


def read_object(path: Path, schema: Any) -> dict:
    """Read an object of this type. The checksum, if present, is verified and left out."""
    try:
        file = path.read_bytes()
        adapter(schema).validate_json(file)
        content = json.loads(file)  # in the order of the file, which the checksum depends on
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{path}: damaged ({place}{': ' * bool(place)}{first['msg']})") from error
    except ValueError as error:  # a number of very many digits
        raise ConfigError(f"{path}: damaged ({error})") from error
    if CHECKSUM in content and content.pop(CHECKSUM) != json_checksum(content):
        raise ConfigError(f"{path}: damaged (the checksum does not match)")
    return content


def read_conformal(summary: Path) -> ConformalRecord | None:
    """The scores of a finished run; None if it is unfinished or has none."""
    return read_object(summary, WithConformal).get("conformal") if summary.exists() else None
