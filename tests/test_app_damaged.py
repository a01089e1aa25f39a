"""Damaged files of a run or sweep directory: an error that says what to do, or the same numbers; nothing else."""

import contextlib
import json
import random
import shutil

import pytest
from attacks.mutations import flip_bit
from running import resume_here, same_numbers

from egin_dgl.cli.experiment import make_experiment
from egin_dgl.cli.splitting import make_splits
from egin_dgl.errors import ConfigError, EginError, TrainingError
from egin_dgl.reporting.many_runs.report import make_report
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.runs.json_files import write_object
from egin_dgl.runs.reader import find_runs
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.schemas import RunSummary, read_object
from egin_dgl.runs.sweep_dir import SweepDir, SweepJob, SweepRecord
from egin_dgl.training.job import FoldJob
from egin_dgl.training.parallel.resources import CpuBudget
from egin_dgl.training.parallel.workers import train_folds

FLIPS = [f"bit {place}" for place in (0.1, 0.35, 0.6, 0.9)]
DAMAGES = ["empty", "half", "not UTF-8", "noise", "[]", "{}", "null", "[[1, 2], {}]", *FLIPS]


@pytest.fixture(scope="module")
def interrupted(small_run, tmp_path_factory):
    """The same run with one fold finished, one in its second epoch and one to come."""
    folder = tmp_path_factory.mktemp("runs") / "interrupted"
    folder.mkdir()
    spec, run = RunDir(small_run).load_spec(), RunDir(folder)
    experiment = make_experiment(spec.settings)
    dataset = experiment.dataset
    run.register(spec)
    run.register_data(experiment.model, dataset.info.name, dataset.digest)
    _, splits = make_splits(dataset, spec.settings, run)
    shared = {"train": experiment.train, "device": experiment.device, "recipe": experiment.recipe}
    seed = spec.settings["seed"]
    jobs = [FoldJob(fold, seed, split, run.fold(fold), **shared) for fold, split in splits.items()]

    class PowerCut(Exception):
        pass

    def watch(fold, record):
        if (fold, record.epoch) == (1, 2):
            raise PowerCut

    with pytest.raises(PowerCut):
        train_folds(dataset, jobs, watch, CpuBudget(1))
    return folder


def damage(path, way):
    content = path.read_bytes()
    if way.startswith("bit"):
        place = int(float(way.split()[1]) * len(content))
        content = flip_bit(content, place, place % 7)
    else:
        noise = random.Random(0).randbytes(500)
        ways = {
            "empty": b"",
            "half": content[: len(content) // 2],
            "not UTF-8": b"\xff\xfe\x00",
            "noise": noise,
        }
        content = ways.get(way, way.encode())
    path.write_bytes(content)


def outcome(folder, unbroken):
    """Return `same` for equal numbers, or the error; any other exception fails the test."""
    files = {path for path in folder.rglob("*") if path.is_file()}
    try:
        resume_here(folder)
    except EginError as error:
        assert files <= {path for path in folder.rglob("*") if path.is_file()}, "a file was removed"
        return " ".join(str(error).split())
    same_numbers(unbroken, folder)
    return "same"


def test_interrupted_run_resumes_with_the_same_numbers(interrupted, small_run, tmp_path):
    assert outcome(shutil.copytree(interrupted, tmp_path / "run"), small_run) == "same"


@pytest.mark.parametrize("name", ["last.pt", "best.safetensors"])
def test_flipped_bits_of_a_checkpoint_are_detected(interrupted, tmp_path, name):
    for number in (0, 1):
        fold = FoldDir(shutil.copytree(interrupted / f"fold_{number:02d}", tmp_path / str(number)), number)

        def read(fold=fold):
            return repr(fold.progress() if name == "last.pt" else fold.load_tensors())

        path, expected = fold.path / name, read()
        good = path.read_bytes()
        for place in range(number, len(good), len(good) // 80):
            path.write_bytes(flip_bit(good, place, place % 7))
            try:
                assert read() == expected, place
            except TrainingError as error:
                assert str(error).endswith(f"remove the directory {fold.path} to train this fold again")


@pytest.mark.parametrize(
    "name", ["run.json", "folds.json", "fold_00/last.pt", "fold_01/last.pt", "fold_00/history.csv"]
)
def test_damaged_file_of_an_interrupted_run(interrupted, small_run, name, tmp_path):
    for number, way in enumerate(DAMAGES):
        folder = shutil.copytree(interrupted, tmp_path / str(number))
        damage(folder / name, way)
        with contextlib.suppress(EginError):  # a table is made of what can be read
            make_report(find_runs([folder]))
        if name.endswith(("folds.json", "csv")) and way not in (
            "noise",
            FLIPS[1],
        ):  # written again by a whole run
            continue
        message = outcome(folder, small_run)
        assert message == "same" or str(folder) in message, way


def test_settings_are_sealed(small_run, tmp_path):
    folder = shutil.copytree(small_run, tmp_path / "run")
    text = (folder / "run.json").read_text()
    (folder / "run.json").write_text(text.replace('"hidden_dim": 8', '"hidden_dim": 9'))
    with pytest.raises(
        ConfigError, match=f"damaged .*type the options of the run again, with hydra.run.dir={folder}"
    ):
        resume_here(folder)


@pytest.mark.parametrize("name", ["run.json", "summary.json"])
def test_entries_that_are_missing_or_of_another_type(small_run, name, tmp_path):
    """summary.json is written again, run.json is refused."""
    good = json.loads((small_run / name).read_text())
    folder = shutil.copytree(small_run, tmp_path / "run")
    settings = RunDir(folder).load_spec().settings
    needed = {"settings", "references", "overrides", "choices", "model", "dataset", "data_sha256"}
    for key in good:
        contents = [{name: value for name, value in good.items() if name != key}]
        contents += [good | {key: other} for other in (7, "x", []) if type(other) is not type(good[key])]
        for content in contents:
            (folder / name).write_text(json.dumps(content))
            if name == "summary.json":
                assert (RunDir(folder).load_finished(settings) is None) == (
                    key != "crc32" or "crc32" in content
                )
            elif key in needed:
                with pytest.raises(ConfigError, match="run.json: damaged"):
                    resume_here(folder)
            find_runs([folder])


def test_unknown_metrics_in_a_summary_are_damage(small_run, tmp_path):
    good = read_object(small_run / "summary.json", RunSummary)
    path = tmp_path / "summary.json"
    for changed in ({"metric": "x"}, {"metrics": good["metrics"] | {"x": good["metrics"]["accuracy"]}}):
        write_object(path, good | changed)
        with pytest.raises(ConfigError, match="damaged .*'x' is not a metric"):
            read_object(path, RunSummary)


def test_damaged_summary_history_and_removed_folds_are_made_again(small_run, tmp_path):
    folder = shutil.copytree(small_run, tmp_path / "run")
    text = (folder / "summary.json").read_text()
    mean = json.loads(text)["protocols"]["last"]["mean"]
    (folder / "summary.json").write_text(text.replace(repr(mean), repr(mean / 2)))
    (folder / "fold_01" / "history.csv").write_text("epoch\n1\n")
    assert resume_here(folder)["protocols"]["last"]["mean"] == mean
    same_numbers(small_run, folder)
    (folder / "mine.png").write_bytes(b"a picture that the user put here")
    for name in ("predictions.csv", "curves.png"):
        good = (folder / name).read_bytes()
        (folder / name).write_bytes(good[:-9] + b"changed")
        resume_here(folder)
        assert (folder / name).read_bytes() == good
    for name in ("last.pt", "best.safetensors"):
        good = (folder / "fold_01" / name).read_bytes()
        (folder / "fold_01" / name).write_bytes(b"damaged")
        with pytest.raises(TrainingError, match=f"fold_01/{name}.*remove the directory"):
            resume_here(folder)
        (folder / "fold_01" / name).write_bytes(good)
    resume_here(folder)
    shutil.rmtree(folder / "fold_01")
    resume_here(folder)
    same_numbers(small_run, folder)


def test_checkpoint_of_another_fold_is_refused(small_run, interrupted, tmp_path):
    folder = shutil.copytree(interrupted, tmp_path / "run")
    shutil.copy(folder / "fold_00" / "last.pt", folder / "fold_01" / "last.pt")
    assert "fold_01/last.pt: not a readable checkpoint (it is of fold 0); remove the directory" in outcome(
        folder, small_run
    )


def test_damaged_sweep_is_refused_with_what_to_do(small_run, tmp_path):
    sweep, spec = SweepDir(tmp_path / "sweep"), RunDir(small_run).load_spec()
    record = SweepRecord([SweepJob(f"{number}_gin", spec) for number in range(2)])
    sweep.register(record)
    assert sweep.load() == record
    good = sweep.sweep_json.read_bytes()
    for place in range(0, len(good), 13):
        sweep.sweep_json.write_bytes(flip_bit(good, place, place % 7))
        try:
            assert sweep.load() == record, place
        except ConfigError as error:
            assert f"with hydra.sweep.dir={sweep.path}" in str(error)
    for way in DAMAGES:
        sweep.sweep_json.write_bytes(good)
        damage(sweep.sweep_json, way)
        with pytest.raises(ConfigError, match="sweep.json"):
            sweep.load()
    sweep.sweep_json.write_bytes(good)
    with pytest.raises(ConfigError, match="holds a sweep with other jobs"):
        sweep.register(SweepRecord(record.jobs[:1]))
