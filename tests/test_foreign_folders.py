"""A folder from somebody else: whatever it names, nothing of it runs, is resolved, or is fetched.

Each route is a word that a folder may keep. CANARY is a path that does not exist: each word would make, or read, something
there if it were followed.
"""

import json
import shutil
import subprocess
import sys

import pytest
from running import ROOT, SMALL

from egin_dgl.cli.overrides import understood
from egin_dgl.data import bonds
from egin_dgl.errors import ConfigError, EginError
from egin_dgl.inference.trained_run import load_run
from egin_dgl.models.registry import find_registered as registered
from egin_dgl.models.registry import make_registered as trusted
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.runs.reader import find_runs

TARGETS = [
    "os.mkdir",
    "pathlib.Path.touch",
    "shutil.copyfile",
    "torch.load",
    "joblib.load",
    "numpy.load",
    "torch.hub.load",
    "hydra.utils.instantiate",
    "builtins.eval",
    "torch.optim.adam.torch.load",  # begins like an optimizer
    "torch.optim.lr_scheduler.torch.hub.load",
    "egin_dgl.app.torch.hub.load",
    "egin_dgl.models.registry.import_module",
    "egin_dgl.models.dispatch.torch.load",
    "egin_dgl.data.prepare.json.loads",
    "egin_dgl.data.dataset.Path.touch",
    "egin_dgl.files.write_text",
    "egin_dgl.cli.app.train",
    "egin_dgl.models.model.nn.Module",  # a class, but no model
    "egin_dgl.models.GraphModel.mro",
    "antigravity",
    "this.s",
]
CALLS = [
    *(f"model._target_={target}" for target in TARGETS),
    *(f"{group}._target_=os.mkdir" for group in ("dataset", "optimizer", "scheduler", "ewl")),
    "optimizer._target_=egin_dgl.models.EGIN",  # registered, but as another kind
    "+trainer._target_=os.mkdir",
    "++model={_target_: os.mkdir, path: CANARY}",
    "+model.readout={_target_: os.mkdir, path: CANARY}",
    "model.readout=[{_target_: os.mkdir, path: CANARY}]",
    "+model.deep={a: {b: [{_target_: os.mkdir}]}}",
    "+model._args_=[CANARY]",
    "+model._convert_=all",
    "+model._recursive_=true",
    "model._partial_=false",
    "+dataset._args_=[CANARY]",
]
RESOLVED = [
    "model.readout=${oc.env:HOME}",
    "'model.readout=${oc.env:HOME}'",
    "model.readout='${oc.env:HOME}'",
    r"model.readout=$\{oc.env:HOME\}",
    r"model.readout=choice($\{oc.env:HOME\},sum)",
    "model.readout=${oc.decode:${oc.env:HOME}}",
    "model.readout=${hydra:runtime.cwd}",
    "+model.deep=${oc.create:{_target_: os.mkdir}}",
]
OF_HYDRA = [
    "+hydra.callbacks.x={_target_: os.mkdir, path: CANARY}",
    "hydra.callbacks.record._target_=os.mkdir",
    "+hydra.callbacks.x._target_=os.mkdir",
    "+hydra={callbacks: {x: {_target_: os.mkdir}}}",
    "hydra.searchpath=[CANARY]",
    "hydra.searchpath=[file:///tmp]",
    "--config-dir=CANARY",
    "--config-path=CANARY",
    "-cd=CANARY",
    "hydra.launcher._target_=os.mkdir",
    "+hydra.launcher.setup=[touch CANARY]",
    "hydra.launcher.partition='debug\ntouch CANARY'",
    "hydra.launcher.submitit_folder=CANARY",
    "+hydra.launcher.python=CANARY",
    "hydra.launcher.pre_dispatch=__import__('os').mkdir('CANARY')",
    "hydra.sweeper._target_=os.mkdir",
    "hydra.sweeper.storage=sqlite:///CANARY",
    "hydra.sweeper.custom_search_space=os.mkdir",
    "+hydra.sweeper.params={model._target_: os.mkdir}",
    "hydra.sweeper.sampler._target_=os.mkdir",
    "hydra/sweeper=../../../CANARY",
    "hydra/launcher=evil",
    "hydra/job_logging=CANARY",
    "hydra.job_logging.handlers.file.filename=CANARY",
    "+hydra.job_logging.handlers.x={(): os.mkdir, path: CANARY}",
    "+hydra.job.env_set.LD_PRELOAD=CANARY",
    "hydra.job.chdir=true",
    "hydra.output_subdir=CANARY",
    "++hydra.run.dir=CANARY",
    "+hydra.sweep.subdir=CANARY",
]
ELSEWHERE = [
    "model=../../../CANARY",
    "model=/CANARY",
    "model=egin,../CANARY",
    "model@hydra.callbacks=egin",
    "+evil/model=CANARY",
    "dataset.url=http://127.0.0.1:9/CANARY",
    "+evil=1",
]
ROUTES = [*CALLS, *RESOLVED, *OF_HYDRA, *ELSEWHERE]


@pytest.fixture
def canary(tmp_path):
    path = tmp_path / "canary"
    yield path
    assert not path.exists()


def foreign_run(folder, *words):
    (folder / ".hydra").mkdir(parents=True)
    (folder / ".hydra" / "overrides.yaml").write_text(json.dumps([*SMALL, *words]))  # JSON is YAML too
    return folder


def foreign_sweep(folder, *words, part="task"):
    folder.mkdir(parents=True)
    asked = {"hydra": [], "task": [*SMALL, "model=egin,gin"], "trials": None}
    asked[part] = [*asked[part], *words]
    (folder / "sweep.json").write_text(json.dumps(asked))
    return folder


def said_again(folder, *others):
    return understood([f"resume={folder}", *others])


@pytest.mark.parametrize("word", ROUTES)
def test_no_route_leads_out_of_a_run_or_a_sweep(word, canary, tmp_path):
    word = word.replace("CANARY", str(canary))
    folders = [foreign_run(tmp_path / "run", word), foreign_sweep(tmp_path / "sweep", word)]
    folders.append(foreign_sweep(tmp_path / "other", word, part="hydra"))
    for folder in folders:
        with pytest.raises(
            ConfigError, match="asks for .*; if you know who made the folder, add trust=true$"
        ):
            said_again(folder)
        assert word in said_again(folder, "trust=true")


@pytest.mark.parametrize("word", [5, {"model": "egin"}, ["model=egin"], None])
def test_words_that_are_no_words_are_refused(word, tmp_path):
    with pytest.raises(ConfigError, match="no option with a value|overrides.yaml: damaged"):
        said_again(foreign_run(tmp_path / "run", word))


def test_where_it_goes_on_is_not_the_folders_to_say(canary, tmp_path):
    places = [
        f"hydra.run.dir={canary}",
        f"hydra.sweep.dir={canary}",
        f"hydra.sweep.subdir=../../{canary.name}",
    ]
    run, sweep = foreign_run(tmp_path / "run", *places), foreign_sweep(tmp_path / "sweep", *places)
    assert said_again(run) == [*SMALL, f"hydra.run.dir='{run}'", "hydra.output_subdir=null"]
    assert said_again(sweep) == ["--multirun", *SMALL, "model=egin,gin", f"hydra.sweep.dir='{sweep}'"]


def test_a_link_out_of_the_folder_is_not_written_through(canary, tmp_path):
    folder = foreign_run(tmp_path / "run")
    (folder / "fold_00").symlink_to(canary)
    with pytest.raises(ConfigError, match="fold_00 is a link that leads out of the folder"):
        said_again(folder)


def test_submitit_reads_no_pickle_that_was_there_before(tmp_path):
    folder = foreign_sweep(tmp_path / "sweep", "hydra/launcher=submitit_local")
    first, second = (next(w for w in said_again(folder) if "submitit_folder" in w) for _ in range(2))
    assert first != second


def test_what_honest_folders_keep_is_said_again(tmp_path):
    words = [
        "model=egin_e,gin",
        "model.hidden_dim=choice(8,16)",
        "optimizer.lr=tag(log,interval(0.001,0.02))",
    ]
    words += [
        "cv.fold=range(10)",
        "cv.fold=[0,3]",
        "scheduler.T_max=${trainer.epochs}",
        "~model.scale_by_size",
    ]
    words += ["+cv.grid.optimizer.lr=[0.01]", "dataset.expect={graphs: 60}", "dataset.root='/a folder/tu'"]
    words += [
        "model._target_=egin_dgl.models.GIN",
        "optimizer._target_=torch.optim.RMSprop",
        "dataset.url=null",
    ]
    hydra = [
        "hydra/launcher=joblib",
        "hydra.launcher.n_jobs=-1",
        "hydra/sweeper=optuna",
        "hydra.launcher.partition=debug",
    ]
    hydra += [
        "hydra.sweeper.sampler.seed=0",
        "hydra.job_logging.root.level=ERROR",
        "hydra/sweeper/sampler=random",
    ]
    assert set(words) <= set(said_again(foreign_run(tmp_path / "run", *words)))
    folder = foreign_sweep(tmp_path / "sweep", *hydra, part="hydra")
    assert {*hydra, "hydra/sweeper=search"} - {"hydra/sweeper=optuna"} <= set(said_again(folder))


def test_trust_is_for_folders_alone():
    with pytest.raises(ConfigError, match="trust=true goes with resume=FOLDER or run=FOLDER"):
        understood(["model=egin", "trust=true"])


def test_reading_for_a_table_resolves_nothing(canary, monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET", "of mine")
    for number, word in enumerate(ROUTES):
        folder = foreign_run(tmp_path / "runs" / f"{number}_run", word.replace("CANARY", str(canary)))
        config = "model: {_target_: os.mkdir, path: %s, x: '${oc.env:SECRET}', y: '${trainer.epochs}', z: '${model}'}\n"
        config += "trainer: {epochs: 7, workers: 2}\ncv: {k: 3}\nseed: '${oc.env:SECRET}'\n"
        config += "dataset: {}\noptimizer: {}\nscheduler: {}\newl: {}\n"
        (folder / ".hydra" / "config.yaml").write_text(config % canary)
    runs = find_runs([tmp_path / "runs"])
    assert len(runs) == len(ROUTES)
    for run in runs:
        model = run.settings["model"]
        assert (model["x"], model["y"], model["z"]) == ("${oc.env:SECRET}", 7, "${model}")
        assert run.seed == "${oc.env:SECRET}"
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "table.py", tmp_path / "runs"], capture_output=True, text=True
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "of mine" not in done.stdout + done.stderr


@pytest.mark.parametrize("target", [*TARGETS, None, 5, "", ".", "egin_dgl..models", {"_target_": "os.mkdir"}])
def test_only_the_object_itself_opens_the_registry(target):
    before = set(sys.modules)
    for kind in ("model", "dataset", "ewl", "optimizer", "scheduler", "hydra"):
        with pytest.raises(ConfigError, match="is not called on a folder's word"):
            registered(target, kind)
    assert all(name.startswith(("egin_dgl", "torch.optim")) for name in set(sys.modules) - before)


def test_a_kept_model_is_made_again_and_nothing_nested_in_it():
    info = bonds(graphs=8).info
    node = {"_target_": "egin_dgl.models.EGIN", "_partial_": True, "hidden_dim": 8, "num_layers": 1}
    assert trusted(node)(info).name == "EGIN"
    for wrong in (
        {"readout": {"_target_": "os.mkdir"}},
        {"readout": "${oc.env:HOME}"},
        {"_args_": [1]},
        {"hidden_dim": 10**9},
        {"make_layer": "os.mkdir"},
        {"anything": 1},
    ):
        with pytest.raises(ConfigError):
            trusted(node | wrong)
    for wrong in (None, [], "egin_dgl.models.EGIN", {}, {"_target_": "os.mkdir"}):
        with pytest.raises(ConfigError):
            trusted(wrong)


@pytest.fixture(scope="module")
def used(run_here, tmp_path_factory):
    folder = tmp_path_factory.mktemp("used")
    run_here(folder, *SMALL, "trainer.epochs=1")
    return folder


def metadata_of_others(good, canary):
    for target in TARGETS:
        yield {"model": {"_target_": target, "path": str(canary), "name": str(canary)}}
        yield {"model": {"_target_": target}}
    yield {"model": good["model"] | {"readout": {"_target_": "os.mkdir", "path": str(canary)}}}
    yield {"model": good["model"] | {"_args_": [str(canary)]}}
    yield {"model": good["model"] | {"readout": "${oc.env:HOME}"}}
    for name in ("model", "info", "transforms", "vocabulary"):
        yield from ({name: wrong} for wrong in ([1], "text", 5, {"os.mkdir": str(canary)}))
    for wrong in (-3, "x", 10**12, None):
        yield {"info": good["info"] | {"node_dim": wrong}}


def test_weights_of_others_make_nothing_but_a_model(used, canary, tmp_path):
    """Their checksum is right: it is there against damage, not malice."""
    fold = FoldDir(shutil.copytree(used, tmp_path / "run") / "fold_00", 0)
    tensors, good = fold.load_tensors()
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}  # of the file that is written anew
    for wrong in metadata_of_others(good, canary):
        fold.save_tensors(tensors, good | wrong)
        with pytest.raises(EginError):
            load_run(tmp_path / "run")
        assert not canary.exists(), wrong


def test_the_command_refuses_too_and_the_canary_would_have_sung(refused, tmp_path):
    """With trust=true the word is followed: so the canary's silence elsewhere means something."""
    canary = tmp_path / "canary"
    word = f"+hydra.callbacks.x={{_target_: shutil.copyfile, src: {__file__}, dst: {canary}}}"
    run, sweep = foreign_run(tmp_path / "run", word), foreign_sweep(tmp_path / "sweep", word)
    for folder in (run, sweep):
        done = refused(tmp_path, f"resume={folder}")
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"error: {folder} asks for ") and not canary.exists()
    refused(tmp_path, f"resume={foreign_run(tmp_path / 'known', word, 'trainer.epochs=0')}", "trust=true")
    assert canary.exists()
