"""Settings: messages about invalid values, classes of the user, and the settings of a run directory."""

from pathlib import Path

import pytest
import torch
import yaml
from hydra.errors import HydraException
from omegaconf import OmegaConf
from running import BONDS, composed, replaced, settings_of
from torch import nn

from egin_dgl.cli import error_messages
from egin_dgl.cli.error_messages import check_overrides, explain
from egin_dgl.cli.experiment import build, make_experiment
from egin_dgl.cli.validation import imports_from, validate_settings
from egin_dgl.errors import ConfigError


@pytest.mark.parametrize(("text", "value"), [("no", False), ("off", False), ("yes", True), ("On", True)])
def test_yes_and_no_are_booleans(text, value):
    options = ["model.learn_eps", "cv.validation", "trainer.model.scale_by_size", "ewl.attributes"]
    settings = settings_of(*BONDS, "ewl=colors", *(f"{option}={text}" for option in options))
    assert settings["model"]["learn_eps"] is settings["ewl"]["attributes"] is value
    assert settings["model"]["scale_by_size"] is value  # an interpolation of the option of trainer
    assert make_experiment(settings).model == ("EGIN-E-ε" if value else "EGIN-E")


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["+model.nothing=1"], "there is no option 'model.nothing'; valid: dropout, edge_dim"),
        (["+optimizer.amsgra=1"], "there is no option 'optimizer.amsgra'; valid: .*did you mean amsgrad"),
        (["+trainer.epochz=1"], "there is no option 'trainer.epochz'; valid: .*did you mean epochs"),
        (["+trainer.model.x=1"], "there is no option 'trainer.model.x'; valid: mlp_dropout, scale_by_size$"),
        (["+model.make_layer=1"], "there is no option 'model.make_layer'"),
        (["+ewl.depth=1"], "ewl has no _target_"),
        (["model._target_=nowhere.Model"], "model._target_ must name a class or function"),
        (["model._partial_=1"], "model._partial_ must be true or false, got 1"),
        (
            ["+optimizer.betas=[0.9,1]"],
            r"optimizer.betas must be less than 1, got \[0.9, 1\]",
        ),
        (["model=dgcnn", "model.conv_dims=[1]"], "model.conv_dims must have at least 2 items"),
        (["trainer.ema_decay=1"], r"trainer.ema_decay must be less than 1, got 1$"),
        (["optimizer.lr=-1"], "optimizer.lr must be greater than or equal to 0, got -1"),
        (["trainer.clip_grad_norm=0"], "trainer.clip_grad_norm must be greater than 0, got 0"),
        (["cv.folds_file=x"], "cv.folds_file must be the path of a file, got 'x'"),
        (
            ["cv=nested", "cv.grid={model: {hidden_dim: []}}"],
            "cv.grid.model.hidden_dim must have at least 1 item",
        ),
        (["trainer.epochs='3'"], "trainer.epochs must be a valid integer, got '3'"),
        (["model.norm=abc"], "model.norm must be 'batch', 'layer' or 'none', got 'abc'"),
    ],
)
def test_messages(overrides, sentence):
    with pytest.raises(ConfigError, match=f"^{sentence}"):
        make_experiment(settings_of(*BONDS, *overrides))


def test_sweeps_are_bounded_and_unpickle_nothing(refused, tmp_path):
    for options, message in (
        (["seed=range(0,1000000000)"], "a sweep has at most 10,000 jobs"),
        (["seed=range(0,200)", "model.hidden_dim=range(1,100)"], "a sweep has at most 10,000 jobs"),
        (["hydra/sweeper=optuna", "hydra/sweeper/sampler=cmaes", "seed=choice(1,2)"], "would unpickle"),
    ):
        done = refused(tmp_path, "-m", "dataset=bonds", *options)
        assert message in done.stderr and done.stderr.count("\n") == 1
    assert "reproducible must be" in refused(tmp_path, "reproducible=maybe").stderr


@pytest.mark.parametrize("option", ["sweeper/optuna", "sweeper/sampler/tpe"])
def test_search_without_its_package_names_the_package(option, monkeypatch):
    missing = HydraException(f"In 'train': Could not find 'hydra/{option}'\nAvailable options: …")
    assert "pip install" not in explain(missing)  # it is installed here
    monkeypatch.setattr(error_messages, "installed_version", lambda package: "not installed")
    assert explain(missing).endswith("is not installed: pip install hydra-optuna-sweeper 'sqlalchemy<2'")


def test_a_user_model_is_validated_by_its_signature(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from egin_dgl.models import GIN\n"
        "from egin_dgl.options import Fraction\n"
        "class Mine(GIN):\n"
        "    def __init__(self, info, share: Fraction = 0.5, free=None, **options):\n"
        "        super().__init__(info, **options)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    overrides = ["model=gin", "model._target_=mine.Mine", *BONDS]
    assert make_experiment(settings_of(*overrides, "+model.free={a: 1}")).model == "GIN"
    for override, message in (
        ("+model.share=2", "model.share must be less than or equal to 1, got 2"),
        ("model.mlp_layers=0", "model.mlp_layers must be greater than or equal to 1"),  # of its base class
    ):
        with pytest.raises(ConfigError, match=message):
            settings_of(*overrides, override)


@pytest.mark.parametrize(
    ("option", "valid", "invalid"),
    [
        ("n_trials", "0", "-1"),
        ("n_jobs", "1", "1.5"),
        ("max_failure_rate", "null", "abc"),
        ("study_name", "abc", "''"),
    ],
)
def test_options_of_a_search_are_validated_before_it_starts(option, valid, invalid):
    check_overrides([f"hydra.sweeper.{option}={valid}"])
    with pytest.raises(ConfigError, match=f"hydra.sweeper.{option} must "):
        check_overrides([f"hydra.sweeper.{option}={invalid}"])


def test_the_largest_sizes_fit_into_memory():
    """The bounds of widths are there for this."""
    sizes = ["model.num_layers=1", "model.hidden_dim=4096", "model.edge_dim=4096"]
    experiment = make_experiment(settings_of(*BONDS, *sizes))
    network = experiment.recipe.make_model(experiment.dataset.info)
    assert isinstance(network, nn.Module)
    assert sum(parameter.nbytes for parameter in network.parameters()) < 500e6


@pytest.fixture(scope="module")
def recorded():
    return OmegaConf.to_container(composed("dataset=mutag", "scheduler=cosine"), resolve=True)


def test_settings_of_a_run_directory_are_plain_values(recorded):
    valid = validate_settings(
        recorded | {"trainer": recorded["trainer"] | {"standardize": "yes"}}, trust=False
    )
    assert valid["trainer"]["standardize"] is True and valid["scheduler"]["T_max"] == 100
    assert yaml.safe_load(yaml.safe_dump(valid)) == valid
    assert validate_settings(valid, trust=False) == valid


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("model._target_", "os.mkdir", "is not a model of egin_dgl or torch"),
        ("model._target_", "egin_dgl.data.load_tu", "is not a model"),
        ("model._target_", ["os.mkdir"], "is not a model"),
        ("dataset._target_", "egin_dgl.files.write_text", "is not a dataset"),
        ("model._partial_", False, "model._partial_ must be true"),
        ("dataset._partial_", True, "dataset._partial_ must be false"),
        ("model._args_", [1], "model has the key '_args_'"),
        ("trainer._target_", "os.mkdir", "trainer has the key '_target_'"),
        ("cv.grid", {"model": {"_target_": ["os.mkdir"]}}, "cv.grid.model has the key '_target_'"),
        ("model.readout", {"_target_": "os.mkdir"}, "model.readout has the key '_target_'"),
        ("model.readout", "${oc.env:HOME}", "is not resolved from a run directory"),
        ("seed", "${oc.env:HOME}", "is not resolved"),
        ("dataset.name", "../MUTAG", "dataset.name must be a name without a path"),
        ("dataset.url", "http://127.0.0.1/x", "dataset.url must be the default"),
        ("evil", 1, "there is no option 'evil'"),
        ("self", 1, "there is no option 'self'"),
        ("model", None, "model must be a group of options"),
        ("cv.fold", list(range(50_000)), "more than 100000 characters"),
    ],
)
def test_settings_of_a_run_directory_call_nothing_else(recorded, place, value, message):
    changed = replaced(recorded, place.split("."), value)
    with pytest.raises(ConfigError, match=message):
        validate_settings(changed, trust=False)


def test_settings_nested_too_deep_are_refused(recorded):
    deep = 1
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(ConfigError, match="nested too deep"):
        validate_settings(recorded | {"cv": recorded["cv"] | {"grid": deep}}, trust=False)


def test_build_takes_plain_settings(recorded):
    make = build(recorded, "optimizer")
    assert (make.func, make.keywords["lr"]) == (torch.optim.Adam, 0.01)
    assert build(settings_of(*BONDS), "dataset").info.graphs == 8


@pytest.mark.parametrize("dataset", ["tu", "csv", "smiles", "graphs"])
def test_the_name_of_a_dataset_is_not_a_path(dataset):
    path = [] if dataset == "tu" else ["dataset.path=x"]
    for name in ("../../../x", "..", "a/b"):
        with pytest.raises(ConfigError, match="^dataset.name must be a name without a path, got"):
            settings_of(f"dataset={dataset}", *path, f"dataset.name={name}")


def test_modules_in_the_working_directory_are_imported_before_python_3_11(tmp_path, monkeypatch):
    (tmp_path / "run" / "0").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "run" / "0")
    for directory in (Path(), Path(".."), tmp_path / "run"):
        assert imports_from(directory, (3, 10)) and not imports_from(directory, (3, 11))
    assert not imports_from(tmp_path / "other", (3, 10))
