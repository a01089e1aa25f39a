"""Every file of a run folder damaged in many ways: a sentence that says what to do, or the same numbers; nothing else."""

import contextlib
import json
import random
import shutil
from pathlib import Path

import pytest
import running
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from running import ROOT, SMALL, same_numbers

from egin_dgl.cli.app import cut, train
from egin_dgl.cli.experiment import make_experiment
from egin_dgl.cli.overrides import understood
from egin_dgl.cli.sweep import continued
from egin_dgl.errors import ConfigError, EginError, TrainingError
from egin_dgl.reporting.many_runs.report import make_report
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.runs.reader import find_runs
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import settings_of
from egin_dgl.runs.sweep_dir import SweepDir, SweepRequest
from egin_dgl.training.job import FoldJob
from egin_dgl.training.parallel.resources import CpuBudget
from egin_dgl.training.parallel.workers import train_folds

OPTIONS = [*SMALL, "trainer.checkpoint_every=1", "model=gin"]  # not the default model: it must come back
KNOWN = (EginError, HydraException, OmegaConfBaseException)

FLIPS = [f"bit {place}" for place in (0.1, 0.35, 0.6, 0.9)]
DAMAGES = ["empty", "half", "not UTF-8", "noise", "[]", "{}", "null", "7", '"a text"', "[[1, 2], {}]", *FLIPS]


def composed(*options, hydra=False):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("train", ["trainer.fold_workers=1", *options], return_hydra_config=hydra)


@pytest.fixture(scope="module")
def finished(numbers, tmp_path_factory):
    """A run that has ended, with what Hydra notes of it."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    options = running.seeded(OPTIONS)
    running.run_here(folder, *options)
    choices = dict(composed(*options, hydra=True).hydra.runtime.choices)
    hydra = {"runtime": {"choices": choices}, "overrides": {"task": list(options)}}
    (folder / ".hydra").mkdir()
    OmegaConf.save(OmegaConf.create(list(options)), folder / ".hydra" / "overrides.yaml")
    OmegaConf.save(OmegaConf.create({"hydra": hydra}), folder / ".hydra" / "hydra.yaml")
    OmegaConf.save(composed(*options), folder / ".hydra" / "config.yaml")
    return folder


@pytest.fixture(scope="module")
def interrupted(finished):
    """The same run, with one fold finished, one in its second epoch and one to come."""
    folder = finished.with_name("interrupted")
    (folder / ".hydra").parent.mkdir()
    shutil.copytree(finished / ".hydra", folder / ".hydra")
    config, run = composed(*running.seeded(OPTIONS)), RunDir(folder)
    experiment = make_experiment(config)
    dataset = experiment.dataset
    run.claim(experiment.model, dataset.info.name, dataset.digest, settings_of(config))
    _, splits = cut(dataset, config, run)
    made = {"train": experiment.train, "device": experiment.device, "recipe": experiment.recipe}
    jobs = [FoldJob(fold, config.seed, split, run.fold(fold), **made) for fold, split in splits.items()]

    class PowerCut(Exception):
        pass

    def watch(fold, record):
        if (fold, record.epoch) == (1, 2):
            raise PowerCut

    with pytest.raises(PowerCut):
        train_folds(dataset, jobs, watch, CpuBudget(1))
    return folder


def resume(folder):
    """What `resume=FOLDER` does, in this process."""
    words = [word for word in understood([f"resume={folder}"]) if not word.startswith("hydra.")]
    with RunDir(folder).alone():
        return train(composed(*words), folder)


def damage(path: Path, way: str):
    content = path.read_bytes()
    if way.startswith("bit"):
        place = int(float(way.split()[1]) * len(content))
        bit = 1 << random.Random(place).randrange(7)
        content = content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]
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


def json_damages(path: Path):
    """Each entry missing, or of another type."""
    good = json.loads(path.read_text())
    for key in good:
        yield f"no {key}", {name: value for name, value in good.items() if name != key}
        for other in (None, [], 7, "x", {}):
            if type(other) is not type(good[key]):
                yield f"{key} {other!r}", good | {key: other}


def outcome(folder, unbroken):
    """`same` numbers, or the sentence; any other exception is a test that fails."""
    files = {path for path in folder.rglob("*") if path.is_file()}
    try:
        resume(folder)
    except KNOWN as error:
        assert files <= {path for path in folder.rglob("*") if path.is_file()}, "something was destroyed"
        return " ".join(str(error).split())
    same_numbers(unbroken, folder)
    return "same"


def tabled(folder):
    """A table of it is made, whatever is missing in it."""
    with contextlib.suppress(EginError):
        make_report(find_runs([folder]))


def test_no_flipped_bit_of_a_checkpoint_gives_other_content(interrupted, tmp_path):
    """Every part of the files is hit: last.pt of a fold that ended and of one that did not, and the weights."""
    for fold in (0, 1):
        folder = FoldDir(shutil.copytree(interrupted / f"fold_{fold:02d}", tmp_path / str(fold)), fold)
        content = repr(folder.progress())
        good = folder.checkpoint.read_bytes()
        for place in range(fold, len(good), len(good) // 150):
            bit = 1 << place % 8
            folder.checkpoint.write_bytes(good[:place] + bytes([good[place] ^ bit]) + good[place + 1 :])
            try:
                assert repr(folder.progress()) == content, place
            except TrainingError as error:
                assert f"remove the folder {folder.path} to train this fold anew" in str(error)


def test_no_flipped_bit_of_the_weights_gives_others(interrupted, tmp_path):
    folder = FoldDir(shutil.copytree(interrupted / "fold_00", tmp_path / "fold"), 0)
    experiment = make_experiment(composed(*OPTIONS))
    model = experiment.recipe.make_model(experiment.dataset.info)
    content = repr((folder.load_weights(model), model.state_dict()))
    good = folder.weights.read_bytes()
    for place in range(0, len(good), len(good) // 150):
        folder.weights.write_bytes(good[:place] + bytes([good[place] ^ 1 << place % 8]) + good[place + 1 :])
        try:
            assert repr((folder.load_weights(model), model.state_dict())) == content, place
        except TrainingError as error:
            assert str(error).endswith(f"remove the folder {folder.path} to train this fold anew")


FILES = ["run.json", "folds.json", ".hydra/overrides.yaml", ".hydra/hydra.yaml", ".hydra/config.yaml"]
FILES += ["fold_00/last.pt", "fold_01/last.pt", "fold_01/best.safetensors", "fold_00/history.csv"]

READ_TO_RESUME = ("run.json", "fold_00/last.pt", "fold_01/last.pt")
SOME = ("empty", "noise", "[]", FLIPS[1])


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_of_an_interrupted_run(interrupted, finished, name, tmp_path):
    for number, way in enumerate(DAMAGES):
        folder = shutil.copytree(interrupted, tmp_path / str(number))
        damage(folder / name, way)
        tabled(folder)
        if (
            name not in READ_TO_RESUME and way not in SOME
        ):  # made again, or passed over: a whole run each time
            continue
        told = outcome(folder, finished)
        if told != "same":
            assert str(folder) in told or "option" in told or "override" in told.lower(), (way, told)


@pytest.mark.parametrize("name", ["run.json", "summary.json", "folds.json"])
def test_an_object_with_other_entries(finished, name, tmp_path):
    """Of an ended run: summary.json is made again, run.json is refused where it says nothing of the settings."""
    remade = 0
    for number, (way, content) in enumerate(json_damages(finished / name)):
        folder = shutil.copytree(finished, tmp_path / str(number))
        (folder / name).write_text(json.dumps(content))
        tabled(folder)
        if name == "summary.json":
            remade += (
                RunDir(folder).finished(json.loads((folder / "run.json").read_text())["settings"]) is None
            )
        elif name == "run.json":
            outcome(folder, finished)
        else:
            (folder / "summary.json").unlink()
            told = outcome(folder, finished) if number % 6 == 0 else "same"
            assert told == "same", way
    assert (
        name != "summary.json" or remade == number
    )  # all but the one without its checksum, as of an earlier version


def test_a_damaged_summary_and_history_are_made_again(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    text = (folder / "summary.json").read_text()
    mean = json.loads(text)["protocols"]["last"]["mean"]
    (folder / "summary.json").write_text(text.replace(repr(mean), repr(mean / 2)))
    (folder / "fold_01" / "history.csv").write_text("epoch\n1\n")
    assert resume(folder)["protocols"]["last"]["mean"] == mean
    same_numbers(finished, folder)
    (folder / "fold_02" / "history.csv").unlink()
    resume(folder)
    same_numbers(finished, folder)


def test_the_words_of_a_run_come_back_from_hydras_other_note(interrupted, tmp_path):
    folder = shutil.copytree(interrupted, tmp_path / "run")
    words = RunDir(folder).started_with()
    (folder / ".hydra" / "overrides.yaml").write_text("")
    assert RunDir(folder).started_with() == words
    assert RunDir(folder).started_with() == words  # written again
    (folder / ".hydra" / "overrides.yaml").write_text("")
    (folder / ".hydra" / "hydra.yaml").write_text("[]")
    with pytest.raises(ConfigError, match=rf"give the options of the run again, with hydra.run.dir={folder}"):
        RunDir(folder).started_with()


def test_a_fold_that_is_taken_away_is_trained_anew(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "fold_01" / "last.pt").write_bytes(b"damaged")
    assert resume(folder)["folds"] == 3  # its numbers are in the summary
    shutil.rmtree(folder / "fold_01")
    resume(folder)
    same_numbers(finished, folder)


def test_a_checkpoint_of_another_fold_or_version_is_refused(finished, interrupted, tmp_path):
    folder = shutil.copytree(interrupted, tmp_path / "run")
    shutil.copy(folder / "fold_00" / "last.pt", folder / "fold_01" / "last.pt")
    assert "fold_01/last.pt: the checkpoint of fold 0; remove the folder" in outcome(folder, finished)


def test_a_damaged_sweep_is_refused_with_what_to_do(tmp_path):
    folder = SweepDir(tmp_path / "sweep")
    asked = SweepRequest([], ["model=gin,egin", "model.hidden_dim=8,16"], None)
    folder.claim(asked)
    assert folder.asked() == asked
    good = folder.record.read_bytes()
    tried = 0
    for place in range(len(good)):
        folder.record.write_bytes(good[:place] + bytes([good[place] ^ 1 << place % 7]) + good[place + 1 :])
        try:
            assert folder.asked() == asked, place
        except ConfigError as error:
            assert f"with hydra.sweep.dir={folder.path}" in str(error)
            tried += 1
    assert tried > len(good) / 2
    for way in DAMAGES:
        folder.record.write_bytes(good)
        damage(folder.record, way)
        with pytest.raises(ConfigError, match="sweep.json"):
            continued(folder)
