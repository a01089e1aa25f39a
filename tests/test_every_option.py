"""Every option of every YAML file: an invalid value is refused in one sentence, a valid one builds."""

import math
from copy import deepcopy

import dgl
import pytest
import torch
import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from running import ROOT
from torch import nn

from egin_dgl.cli.error_messages import check_overrides
from egin_dgl.cli.experiment import build, make_experiment
from egin_dgl.cli.validation import (
    OPTION_GROUPS,
    TARGET_GROUPS,
    resolve_settings,
    validate_group,
    validate_settings,
)
from egin_dgl.errors import ConfigError, EginError
from egin_dgl.training.options import RunOptions

CONF = ROOT / "conf"
BONDS = ("dataset=bonds", "dataset.graphs=8")
# A TU dataset that is written down only sets the values of dataset=tu.
CHOICES = [
    (group, path.stem)
    for group in (*OPTION_GROUPS, *TARGET_GROUPS)
    for path in sorted((CONF / group).glob("*.yaml"))
    if "defaults: [tu" not in path.read_text(encoding="utf-8") or path.stem == "mutag"
]
VALUES = ["abc", math.nan, -1, 0, 10**20, None, True, []]

UNBOUNDED = {"optimizer.lr", "optimizer.weight_decay", "scheduler.gamma", "trainer.clip_grad_norm"}
COLUMNS = {f"{side}_{kind}" for side in ("node", "edge") for kind in ("labels", "attributes")}
NULLABLE = {
    "trainer": {"patience", "clip_grad_norm", "class_weights", "ema_decay", "fold_workers", "model"},
    "cv": {"fold", "folds_file", "grid", "split_by"},
    "model": {"k", "decimals"},
    "ewl": {"decimals"},
    "dataset": {"root", "url", "expect", "id", "target", "name", "split_column"} | COLUMNS,
}
# The values of VALUES that are valid, by option.
VALID = {
    "abc": {"dataset.name", "dataset.path", "dataset.target", "dataset.smiles", "dataset.id"}
    | {"dataset.split_column"},
    -1: {"model.decimals", "ewl.decimals"},
    0: {"model.dropout", "model.mlp_dropout", "model.reach", "model.depth", "model.decimals"}
    | {"ewl.depth", "ewl.decimals", "optimizer.momentum", "scheduler.factor", "scheduler.patience"}
    | {"trainer.model.mlp_dropout", "trainer.ema_decay", "trainer.warmup_epochs", "cv.fold", "dataset.seed"}
    | UNBOUNDED - {"trainer.clip_grad_norm"},
    10**20: UNBOUNDED,
    None: {f"{group}.{name}" for group, names in NULLABLE.items() for name in names}
    | {f"dataset.expect.{size}" for size in ("graphs", "classes", "node_dim", "edge_dim")},
    True: {"model.learn_eps", "model.scale_by_size", "model.normalize", "model.attributes"}
    | {"ewl.attributes", "dataset.use_edge_features", "trainer.standardize", "trainer.fast"}
    | {"trainer.model.scale_by_size", "cv.validation", "cv.group_duplicates", "cv.refit", "cv.holdout"},
}


def composed(*overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("train", list(overrides))


def settings_of(*overrides):
    return resolve_settings(composed(*overrides))


def list_keys(options, prefix=()):
    for name, value in options.items():
        if not name.startswith("_"):
            yield (*prefix, name)
            if isinstance(value, dict):
                yield from list_keys(value, (*prefix, name))


def replaced(settings, keys, value):
    changed = deepcopy(settings)
    parent = changed
    for key in keys[:-1]:
        parent = parent[key]
    parent[keys[-1]] = value
    return changed


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Overrides that load eight graphs from each kind of file."""
    directory = tmp_path_factory.mktemp("files")
    rows = [(f"g{i}", "ab"[i % 2], i) for i in range(8)]
    (directory / "graphs.csv").write_text("id,label\n" + "".join(f"{g},{label}\n" for g, label, _ in rows))
    (directory / "nodes.csv").write_text(
        "graph,node,kind\n" + "".join(f"{g},{n},{'xy'[n]}\n" for g, _, _ in rows for n in range(2))
    )
    (directory / "edges.csv").write_text(
        "graph,source,target,bond\n" + "".join(f"{g},0,1,{i % 2}\n" for g, _, i in rows)
    )
    (directory / "m.smi.csv").write_text(
        "smiles,label\n" + "".join(f"CC{'ON'[i % 2]},{c}\n" for _, c, i in rows)
    )
    graphs = [dgl.rand_graph(3, 4) for _ in rows]
    dgl.save_graphs(str(directory / "g.bin"), graphs, {"y": torch.arange(8) % 2})
    paths = {"csv": directory, "smiles": directory / "m.smi.csv", "graphs": directory / "g.bin"}
    return {choice: [f"dataset.path={path}"] for choice, path in paths.items()}


@pytest.fixture(scope="module")
def outcomes(files):
    """(option, value) → None if valid, else the sentence; options that a target inherits are tried once."""
    found, tried, built = {}, set(), set()
    for group, choice in CHOICES:
        dataset = files.get(
            choice, ["dataset.name=X"] if choice == "tu" else BONDS[1:] if choice == "bonds" else []
        )
        settings = OmegaConf.to_container(
            composed(f"{group}={choice}", *(dataset if group == "dataset" else BONDS)), resolve=True
        )
        for keys in list_keys(settings[group]):
            where = (settings[group].get("_target_"), group, *keys)
            if where in tried:
                continue
            tried.add(where)
            for value in VALUES:
                case = ".".join((group, *keys)), repr(value)
                changed = replaced(settings, (group, *keys), value)
                try:
                    changed[group] = validate_group(changed[group], group)
                except ConfigError as error:
                    found.setdefault(case, str(error))
                    continue
                found[case] = None
                if group != "dataset" and where not in built:
                    built.add(where)
                    try:
                        make_experiment(changed)
                    except EginError as error:  # not valid together with other options
                        assert group in str(error) or keys[-1] in str(error), (keys, value, error)
    return found


def test_invalid_values_are_refused_in_one_sentence(outcomes):
    for (key, value), sentence in outcomes.items():
        if sentence is not None:
            assert len(sentence) < 250 and key in sentence, (key, value, sentence)


def test_valid_values_are_those_declared(outcomes):
    valid = {(key, value) for (key, value), sentence in outcomes.items() if sentence is None}
    assert valid ^ {(key, repr(value)) for value, keys in VALID.items() for key in keys} == set()


def test_options_outside_of_groups():
    for name, value, valid in (
        ("seed", 2**32 - 1, True),
        ("seed", 2**32, False),
        ("seed", -1, False),
        ("device", "cuda:1", True),
        ("device", "gpu", False),
        ("reproducible", "any", True),
        ("reproducible", 0, False),
        ("trust", "maybe", False),
        ("fold_curves", "yes", True),
        ("resume", "here", False),
    ):
        if valid:
            RunOptions(**{name: value})
        else:
            with pytest.raises(ConfigError, match=f"^{name} must be .*, got "):
                RunOptions(**{name: value})


def test_readers_refuse_an_unknown_target(files):
    for choice, overrides in files.items():
        with pytest.raises(EginError, match="abc"):
            build(settings_of(f"dataset={choice}", *overrides, "dataset.target=abc"), "dataset")


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
            "optimizer.betas must be less than 1, got \[0.9, 1\]",
        ),
        (["scheduler=plateau", "scheduler.factor=1"], "scheduler: Factor should be < 1.0"),
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
