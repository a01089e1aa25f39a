"""A directory from somebody else is data: whatever it names, nothing is imported, called, resolved, downloaded or written
elsewhere.

CANARY stands for a path that does not exist; each value would create it, or read it, if it were followed.
"""

import json
import shutil
import sys

import pytest
from attacks.foreign import CALL, JOB_NAMES, SETTINGS, foreign_metadata, with_value
from running import edit_settings, run_spec

from egin_dgl.cli.overrides import parse_arguments
from egin_dgl.cli.refit import plan_refit
from egin_dgl.cli.resume import resume
from egin_dgl.cli.validation import validate_recorded
from egin_dgl.errors import ConfigError, EginError
from egin_dgl.inference.trained_run import load_run
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.runs.reader import find_runs
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import RunSpec
from egin_dgl.runs.sweep_dir import SweepDir


@pytest.fixture
def canary(tmp_path):
    path = tmp_path / "canary"
    yield path
    assert not path.exists()


@pytest.fixture(scope="module")
def spec():
    return run_spec("dataset=bonds", "dataset.graphs=60")


@pytest.mark.parametrize(("option", "value"), SETTINGS, ids=str)
def test_settings_of_others_call_nothing(option, value, spec, canary, tmp_path):
    before = set(sys.modules)
    foreign = RunSpec(with_value(spec.settings, option, value, canary))
    with pytest.raises(ConfigError, match=f"^{tmp_path}: .*trust=true$"):
        validate_recorded(foreign, tmp_path, trust=False)
    assert "antigravity" not in set(sys.modules) - before


def test_honest_settings_are_valid(spec, tmp_path):
    assert validate_recorded(spec, tmp_path, trust=False).settings == spec.settings


def test_foreign_sweep_is_refused_before_any_job(spec, canary, tmp_path, monkeypatch):
    sweep = SweepDir(tmp_path / "sweep")
    sweep.path.mkdir()

    def write(name, settings, **more):
        jobs = [{"name": "0_gin", **spec.to_json()}, {"name": name, **spec.to_json(), "settings": settings}]
        sweep.sweep_json.write_text(json.dumps({"jobs": jobs, "trials": None, **more}))

    for name in (*JOB_NAMES, str(canary)):
        write(name, spec.settings)
        with pytest.raises(ConfigError, match="is not a directory inside that of the sweep"):
            resume(parse_arguments([f"resume={sweep.path}"]))
    launcher = [f"hydra.launcher.setup=[touch {canary}]", "hydra/launcher=submitit_local"]
    write("1_gin", with_value(spec.settings, "model", CALL, canary), hydra=launcher)
    with pytest.raises(ConfigError, match="trust=true$"):
        resume(parse_arguments([f"resume={sweep.path}"]))
    assert [path.name for path in sweep.path.iterdir()] == ["sweep.json"]


def test_links_out_of_the_directory_are_refused(small_run, canary, tmp_path):
    folder = shutil.copytree(small_run, tmp_path / "run")
    (folder / "fold_07").symlink_to(canary)
    routes = [
        lambda: resume(parse_arguments([f"resume={folder}"])),
        lambda: plan_refit(RunDir(folder)),
        lambda: load_run(folder),
    ]
    for route in routes:
        with pytest.raises(ConfigError, match="fold_07 is a link that leads out of the directory"):
            route()


def test_links_in_circles_do_not_stop_a_table(small_run, tmp_path):
    shutil.copytree(small_run, tmp_path / "runs" / "one")
    (tmp_path / "runs" / "loop").symlink_to(tmp_path / "runs")
    (tmp_path / "runs" / "again").symlink_to(tmp_path / "runs" / "one")
    (tmp_path / "runs" / "nowhere").symlink_to(tmp_path / "missing")
    assert len(find_runs([tmp_path / "runs"])) == 1


def test_refit_of_a_run_elsewhere_is_not_resumed(small_run, tmp_path):
    folder = shutil.copytree(small_run, tmp_path / "run")
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(record | {"refit_of": str(small_run)}))
    with pytest.raises(ConfigError, match="is a refit of a run elsewhere: type cv=refit"):
        resume(parse_arguments([f"resume={folder}"]))


def test_only_trust_config_dir_ranks_and_launchers_go_with_resume():
    for wrong in ("seed=3", "hydra.run.dir=x", "hydra.sweep.dir=x", "-m"):
        with pytest.raises(ConfigError, match=f"leave out {wrong}"):
            parse_arguments(["resume=run", wrong])
    launched = parse_arguments(["resume=run", "trust=true", "--config-dir", "own", "hydra/launcher=joblib"])
    assert launched.trust and launched.overrides == ["hydra/launcher=joblib"]
    more = parse_arguments(
        ["resume=run", "hydra/launcher=ray", "+hydra.launcher.ray.init.x=1", "trainer.ranks=2"]
    )
    assert more.ranks == "2" and more.overrides == ["hydra/launcher=ray", "+hydra.launcher.ray.init.x=1"]
    with pytest.raises(ConfigError, match="trust=true needs resume=DIR or run=DIR"):
        parse_arguments(["model=egin", "trust=true"])
    with pytest.raises(ConfigError, match="run=DIR is for cv=refit"):
        parse_arguments(["model=egin", "run=x"])
    with pytest.raises(ConfigError, match="leave out model=gin"):
        parse_arguments(["cv=refit", "run=x", "model=gin"])


def test_refused_command_changes_nothing(small_run, canary, tmp_path):
    folder = shutil.copytree(small_run, tmp_path / "run")
    edit_settings(folder, lambda settings: settings["model"].update(_target_="os.mkdir"))
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    for arguments in ([f"resume={folder}"], [f"resume={folder}", "hydra/launcher=joblib"]):
        with pytest.raises(ConfigError):
            resume(parse_arguments(arguments))
    with pytest.raises(ConfigError):
        plan_refit(RunDir(folder))
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_tables_print_no_control_characters_and_resolve_nothing(small_run, monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET", "of mine")
    folder = shutil.copytree(small_run, tmp_path / "run")
    record = json.loads((folder / "run.json").read_text())
    record |= {
        "model": "\x1b[2J${oc.env:SECRET}",
        "overrides": ["seed=\x07"],
        "choices": {"model": "\u202eg"},
    }
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "error.txt").write_text("\x1b]0;title\x07")
    (run,) = find_runs([folder])
    assert run.model == r"\x1b[2J${oc.env:SECRET}" and run.error == r"\x1b]0;title\x07"
    assert run.overrides == (r"seed=\x07",) and run.options == {"model": r"\u202eg"}


def test_weights_of_others_build_nothing_but_a_model(small_run, canary, tmp_path):
    """Their checksum is right: it protects from damage, not from malice."""
    fold = FoldDir(shutil.copytree(small_run, tmp_path / "run") / "fold_00", 0)
    tensors, good = fold.load_tensors()
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    for wrong in foreign_metadata(good, canary):
        fold.save_tensors(tensors, good | wrong)
        with pytest.raises(EginError):
            load_run(tmp_path / "run")
        assert not canary.exists(), wrong


def test_trusted_directory_may_name_other_classes(small_run, tmp_path, monkeypatch):
    """With trust=true the class is imported: so the silence of the canary elsewhere means something."""
    canary = tmp_path / "canary"
    (tmp_path / "theirs.py").write_text(
        f"open({str(canary)!r}, 'w').close()\nfrom egin_dgl.models import GIN\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    spec = RunDir(small_run).load_spec()
    spec.settings["model"]["_target_"] = "theirs.GIN"
    with pytest.raises(ConfigError):
        validate_recorded(spec, small_run, trust=False)
    assert not canary.exists()
    validate_recorded(spec, small_run, trust=True)
    assert canary.exists()
    sys.modules.pop("theirs")
