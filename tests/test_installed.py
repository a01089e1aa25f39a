"""What `pip install` gives: the command `egin`, which does in any folder what the scripts do in the repository."""

import json
import shutil
import zipfile

import pytest
from installing import build_wheel, install
from running import ROOT

from egin_dgl.cli.commands import ewl, table
from egin_dgl.cli.main import COMMANDS
from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.evaluation.protocols import PROTOCOLS
from egin_dgl.ewl.rounds import METHODS

OWN = ROOT / "examples" / "own_model"
TINY = ["cv.k=3", "trainer.epochs=2", "trainer.fold_workers=2", "model=mine", "dataset=few_bonds"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def egin(wheel, tmp_path_factory):
    return install(wheel, tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def own(egin):
    """The example's folder, away from the repository."""
    return shutil.copytree(
        OWN, egin.folder.parent / "own_model", ignore=shutil.ignore_patterns("__pycache__")
    )


@pytest.fixture(scope="module")
def trained(numbers, egin, own):
    """A run with two fold workers of a model and a dataset of one's own, by words that begin the program anew."""
    words = ["--config-dir", own, *TINY, "reproducible=any", "hydra.run.dir=run"]
    done = egin("train", *words)
    assert done.returncode == 0, done.stderr
    return egin.folder / "run"


def test_the_wheel_has_every_module_the_configuration_and_the_licence(wheel):
    files = set(zipfile.ZipFile(wheel).namelist())
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "egin_dgl").rglob("*.py")}
    yamls = {f"egin_dgl/{path.relative_to(ROOT)}" for path in (ROOT / "conf").rglob("*.yaml")}
    assert modules | yamls | {"egin_dgl/py.typed"} <= files
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in files)
    assert not [name for name in files if name.startswith(("tests/", "scripts/", "conf/"))]


@pytest.fixture(scope="module")
def without_torch(egin, unwatched, tmp_path_factory):
    """The command where torch, DGL and numpy cannot be imported."""
    folder = tmp_path_factory.mktemp("nothing")
    for name in ("torch", "dgl", "numpy"):
        (folder / f"{name}.py").write_text(f"raise SystemExit('{name} was loaded')")

    def run(*words):
        with unwatched():  # without torch nothing is trained
            return egin(*words, before=[folder])

    return run


def test_help_loads_nothing_that_computes(without_torch):
    listed = without_torch().stdout
    assert all(f"egin {name} " in listed for name in COMMANDS)
    for name in COMMANDS:
        done = without_torch(name, "--help")
        assert done.returncode == 0 and len(done.stdout.splitlines()) > 3, done.stderr
    assert "egin_e" in without_torch("train", "--help").stdout


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["trian"], "train"),
        (["train", "model=egin_x"], "egin_e"),
        (["train", "model.hiden_dim=3"], "hidden_dim"),
        (["train", "dataset=mutagg", "--help"], "mutag"),
        (["ewl", "audit", "dataset=mutg"], "mutag"),
    ],
)
def test_a_misspelt_word_is_told_without_loading_what_computes(without_torch, words, meant):
    done = without_torch(*words)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and line.startswith("error: ") and line.endswith(f"(did you mean {meant}?)")


def test_a_table_of_nothing_is_told_without_loading_what_computes(without_torch):
    done = without_torch("table", "nowhere")
    assert done.returncode == 1 and done.stderr == "error: nowhere: no such folder\n"


def test_names_that_help_repeats_are_those_defined():
    assert table.PROTOCOL_NAMES.split(", ") == list(PROTOCOLS)
    assert table.METRIC_NAMES.split(", ") == list(METRICS)
    assert ewl.REFINEMENTS == METHODS


def test_a_run_far_from_the_repository_is_of_the_installed_package(trained, egin, own):
    record = json.loads((trained / "run.json").read_text())
    assert (record["model"], record["settings"]["reproducible"]) == ("Mine", "any")
    assert record["arithmetic"]["flags"]["MKL_CBWR"] == "COMPATIBLE"
    kept = (trained / ".hydra" / "hydra.yaml").read_text()
    assert f"path: {egin.site / 'egin_dgl' / 'conf'}" in kept and f"path: {own}" in kept
    assert str(ROOT) not in kept


def test_what_ones_own_folder_started_is_gone_on_with_where_it_is_named_again(trained, egin, own):
    alone = egin("train", "resume=run")
    assert alone.returncode == 1 and alone.stderr.count("\n") == 1
    assert f"was started with --config-dir {own}; give that again" in alone.stderr
    done = egin("train", "resume=run", "--config-dir", own, "trust=true")
    assert done.returncode == 0 and "Mine on bonds" in done.stdout, done.stderr


def test_a_sweep_in_processes_of_a_launcher_finds_ones_own_experiment(numbers, egin, own):
    launched = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "hydra.sweep.dir=sweep"]
    done = egin("train", "-m", "experiment=mine_on_bonds", "--config-dir", own, "seed=1", *launched)
    assert done.returncode == 0, done.stderr
    assert [path.parent.name for path in egin.folder.glob("sweep/*/summary.json")] == ["0_mine_few_bonds"]


def test_the_other_commands_work_there_too(trained, egin, own):
    shown = egin("table", "run")
    assert shown.returncode == 0 and "Mine" in shown.stdout, shown.stderr
    audited = egin("ewl", "audit", "dataset=few_bonds", "--config-dir", own, "--depth", "1")
    assert audited.returncode == 0 and "bonds: 60 graphs" in audited.stdout, audited.stderr


def test_an_option_of_ones_own_is_among_the_valid_ones(without_torch, own):
    done = without_torch("train", "--config-dir", own, "model=minne")
    assert done.stderr.endswith("(did you mean mine?)\n") and " mine," in done.stderr
