"""The directory of a sweep.

sweep.json         settings of all jobs, written before the first one starts; of a search the number of trials
0_egin_mutag, …    one run directory per job; a name with a leading dot is an interrupted trial, moved aside
study.db           study of a search
table.md, …        tables of all jobs
"""

from dataclasses import dataclass
from pathlib import Path

from egin_dgl.errors import ConfigError
from egin_dgl.files import storage_errors
from egin_dgl.runs.json_files import write_object
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import FileIn, RunSpec, Settings, result_settings


@dataclass(frozen=True)
class SweepJob:
    """One point of a sweep; `name` is its directory, relative to that of the sweep."""

    name: str
    spec: RunSpec


@dataclass(frozen=True)
class SweepRecord:
    """Content of sweep.json: all jobs of a sweep, or the number of trials of a search."""

    jobs: list[SweepJob]
    trials: int | None = None

    @property
    def is_search(self) -> bool:
        return self.trials is not None

    @property
    def points(self) -> list[tuple[str, Settings]]:
        return [(job.name, result_settings(job.spec.settings)) for job in self.jobs]

    def __len__(self) -> int:
        return len(self.jobs) if self.trials is None else self.trials


@dataclass(frozen=True)
class SweepDir:
    path: Path

    sweep_json = FileIn("sweep.json")

    @property
    def exists(self) -> bool:
        return self.sweep_json.is_file()

    def register(self, record: SweepRecord) -> None:
        """Write sweep.json, or check that the one here records the same jobs."""
        if self.exists:
            before = self.load()
            if before.is_search != record.is_search or before.points != record.points:
                raise ConfigError(f"{self.path} holds a sweep with other jobs; use a new directory")
            return
        jobs = [{"name": job.name, **job.spec.to_json()} for job in record.jobs]
        with storage_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        write_object(self.sweep_json, {"jobs": jobs, "trials": record.trials})

    def load(self) -> SweepRecord:
        """Return the record. Its settings are data of unknown origin: validate them before use."""
        from egin_dgl.runs.schemas import SweepFile, read_object  # imports pydantic

        try:
            content = read_object(self.sweep_json, SweepFile)
        except ConfigError as error:
            raise ConfigError(
                f"{error}; remove it and type the options of the sweep again, with hydra.sweep.dir={self.path}"
            ) from error
        jobs = [SweepJob(job["name"], RunSpec.from_json(job)) for job in content["jobs"]]
        return SweepRecord(jobs, content["trials"])

    def run_dir(self, job: SweepJob) -> RunDir:
        return RunDir(self.path / job.name)

    def runs(self) -> list[RunDir]:
        return [RunDir(path.parent) for path in sorted(self.path.glob("[!.]*/run.json"))]

    def count_finished(self) -> int:
        """Return how many trials ended, with a result or an error."""
        return sum(run.has_ended for run in self.runs())

    def move_unfinished_aside(self) -> None:
        """Rename interrupted trials of a search, which draws new ones in their place."""
        for run in self.runs():
            if not run.has_ended:
                with run.lock(), storage_errors(run.path):
                    run.path.rename(run.path.with_name(f".interrupted_{run.path.name}"))
