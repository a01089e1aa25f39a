"""Every option of every YAML means what it says: a value that it cannot mean is one sentence, never a traceback."""

from collections import defaultdict

import dgl
import pytest
import torch
import yaml
from hydra import compose, initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from running import ROOT
from torch import nn

from egin_dgl.cli.experiment import make_experiment
from egin_dgl.cli.run_specs import resolve_settings
from egin_dgl.cli.splitting import make_splits
from egin_dgl.cli.validation import checked, with_checked
from egin_dgl.cli.wellformed import check_words
from egin_dgl.errors import ConfigError, EginError, one_line
from egin_dgl.runs.run_dir import RunDir

CONF = ROOT / "conf"
GROUPS = ("model", "optimizer", "scheduler", "trainer", "cv", "ewl", "dataset")
CHOICES = [(group, path.stem) for group in GROUPS for path in sorted((CONF / group).glob("*.yaml"))]
BAD = ["abc", "''", "maybe", "nan", "inf", "-1", "0", "1.5", "1e30", str(10**9), str(10**20), "null", "true"]
BAD += ["[]", "[abc]", "[-1,0]", "{a: 1}"]

ANY_SIZE = {
    "optimizer.lr",
    "optimizer.weight_decay",
    "scheduler.gamma",
    "trainer.clip_grad_norm",
}  # numbers from 0 on
SEEDS = {"seed", "dataset.seed"}  # whole numbers from 0 to 2³² − 1
# What is taken of BAD, because the option's declaration says so; everything else is refused.
MEANT = {
    "true": {
        "model.learn_eps",
        "model.scale_by_size",
        "model.normalize",
        "model.attributes",
        "ewl.attributes",
    }
    | {"trainer.standardize", "trainer.model.scale_by_size", "dataset.use_edge_features"}
    | {"cv.validation", "cv.group_duplicates", "cv.refit", "cv.holdout"}
    | {"model._partial_", "optimizer._partial_", "scheduler._partial_"}
    | {"trust", "fold_curves"},
    "null": {
        "trainer.patience",
        "trainer.clip_grad_norm",
        "trainer.class_weights",
        "trainer.ema_decay",
        "trainer.fold_workers",
    }
    | {"cv.fold", "cv.folds_file", "cv.grid", "model.k", "model.decimals", "ewl.decimals", "resume", "run"}
    | {"dataset.root", "dataset.url", "dataset.expect", "cv.split_by"}
    | {"dataset.id", "dataset.target", "dataset.name", "dataset.split_column"}
    | {f"dataset.{side}_{kind}" for side in ("node", "edge") for kind in ("labels", "attributes")}
    | {f"dataset.expect.{size}" for size in ("graphs", "classes", "node_dim", "edge_dim")},
    "0": {
        "model.dropout",
        "model.mlp_dropout",
        "trainer.model.mlp_dropout",
        "model.reach",
        "model.depth",
        "ewl.depth",
    }
    | {"model.decimals", "ewl.decimals", "optimizer.momentum", "scheduler.factor", "scheduler.patience"}
    | {"trainer.ema_decay", "trainer.warmup_epochs", "cv.fold"}
    | SEEDS
    | ANY_SIZE - {"trainer.clip_grad_norm"},
    "-1": {"model.decimals", "ewl.decimals"},  # round to tens
    "1.5": ANY_SIZE,
    "1e30": ANY_SIZE,
    str(10**9): ANY_SIZE | SEEDS,
    str(10**20): ANY_SIZE,
    "abc": {"dataset.name"},  # a name like any other, which is then not found
    "maybe": {"dataset.name"},
}


def composed(*words):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("train", list(words))


def keys(node, place):
    """The options of a group, those inside of others too."""
    for name in node:
        yield f"{place}.{name}"
        inner = node._get_node(name)
        if isinstance(inner, DictConfig) and not inner._is_none() and not inner._is_interpolation():
            yield from keys(inner, f"{place}.{name}")


def to_try(group, choice, cfg, done):
    """The options of a YAML: those written in it, and those it inherits for a target that they were not tried with."""
    written = set(yaml.safe_load((CONF / group / f"{choice}.yaml").read_text(encoding="utf-8")))
    for key in keys(cfg[group], group):
        where = cfg[group].get("_target_"), key
        if where not in done or key.split(".")[1] in written:
            done.add(where)
            yield key


def up_to_training(cfg, group, run):
    """What the app does with a configuration before the first fold; graphs are read only where they are generated."""
    if group in cfg:
        with_checked(cfg, group)  # first, as it refuses most
    cfg = checked(cfg)
    if "root" not in cfg.dataset:
        make_splits(make_experiment(cfg).dataset, resolve_settings(cfg), run)


def own_files(folder):
    """Eight graphs in each kind of file that is a person's own."""
    (folder / "tables").mkdir()
    (folder / "tables" / "graphs.csv").write_text(
        "id,label\n" + "".join(f"g{i},{'ab'[i % 2]}\n" for i in range(8))
    )
    (folder / "tables" / "nodes.csv").write_text(
        "graph,node,kind\n" + "".join(f"g{i},{n},{'xy'[n]}\n" for i in range(8) for n in range(2))
    )
    (folder / "tables" / "edges.csv").write_text(
        "graph,source,target,bond\n" + "".join(f"g{i},0,1,{i % 2}\n" for i in range(8))
    )
    (folder / "m.csv").write_text(
        "smiles,label\n" + "".join(f"CC{'ON'[i % 2]},{'ab'[i % 2]}\n" for i in range(8))
    )
    dgl.save_graphs(
        str(folder / "g.bin"), [dgl.rand_graph(3, 4) for _ in range(8)], {"y": torch.arange(8) % 2}
    )
    files = {"csv": "tables", "smiles": "m.csv", "graphs": "g.bin"}
    return {choice: [f"dataset.path={folder / name}"] for choice, name in files.items()}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """(option, value) → None where it was taken, the sentence, or what was raised instead; for each choice of a group."""
    parser, found, done = OverridesParser.create(), {}, set()
    values = {value: parser.parse_override(f"x={value}") for value in BAD}
    own = own_files(tmp_path_factory.mktemp("own")) | {"bonds": ["dataset.graphs=8"]}
    for group, choice in CHOICES:
        small = own.get(choice, []) if group == "dataset" else ["dataset=bonds", "dataset.graphs=8"]
        cfg = composed(f"{group}={choice}", "cv.k=4", *small)
        run = RunDir(tmp_path_factory.mktemp("run"))
        alone = [str(key) for key in cfg if key not in GROUPS] if choice == "smoke" else []
        for key in [*to_try(group, choice, cfg, done), *alone]:
            for value, override in values.items():
                override.key_or_group, override.input_line, changed = key, f"{key}={value}", cfg.copy()
                run.folds.unlink(missing_ok=True)
                try:
                    ConfigLoaderImpl._apply_overrides_to_config([override], changed)
                    up_to_training(changed, group, run)
                    outcome = None
                except (EginError, HydraException, OmegaConfBaseException) as error:
                    outcome = one_line(error)
                except Exception as error:
                    outcome = error
                found[group, choice, key, value] = outcome
    return found


def test_every_value_is_taken_or_refused_in_one_sentence(outcomes):
    assert len(outcomes) > 5000
    raised = {where: error for where, error in outcomes.items() if isinstance(error, Exception)}
    assert raised == {}
    for (group, _, key, value), sentence in outcomes.items():
        if sentence is not None:
            assert len(sentence) < 250, sentence
            named = (
                group,
                key.split(".")[-1],
                value.strip("[]"),
            )  # the option, or the value that is not there
            assert any(name in sentence for name in named), (key, value, sentence)


def test_no_value_is_taken_that_means_nothing(outcomes):
    taken = defaultdict(set)
    for (_, _, key, value), outcome in outcomes.items():
        if outcome is None:
            taken[value].add(key)
    assert dict(taken) == MEANT


@pytest.mark.parametrize(("word", "meant"), [("no", False), ("off", False), ("yes", True), ("On", True)])
def test_yes_and_no_are_true_and_false_in_all_that_is_built_and_written(word, meant):
    options = [
        "model.learn_eps",
        "model.scale_by_size",
        "cv.validation",
        "cv.group_duplicates",
        "trainer.standardize",
    ]
    words = [
        "dataset=bonds",
        "dataset.graphs=8",
        "ewl=colors",
        f"ewl.attributes={word}",
        *(f"{o}={word}" for o in options),
    ]
    cfg = checked(composed(*words))
    assert all(OmegaConf.select(cfg, option) is meant for option in [*options, "ewl.attributes"])
    assert make_experiment(cfg).model == ("EGIN-E-ε" if meant else "EGIN-E")


def test_a_recipe_that_says_no_is_followed_by_the_models_that_refer_to_it():
    cfg = checked(composed("trainer.model.scale_by_size=no"))
    assert cfg.model.scale_by_size is False and cfg.trainer.model.scale_by_size is False


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["+model.nothing=1"], "there is no option 'model.nothing' here; valid: dropout, edge_dim"),
        (["+optimizer.nothing=1"], "there is no option 'optimizer.nothing' here; valid: amsgrad, betas"),
        (["+trainer.nothing=1"], "there is no option 'trainer.nothing' here; valid: average, batch_size"),
        (["+model.make_layer=1"], "there is no option 'model.make_layer' here"),
        (["+ewl.depth=1"], "ewl has no _target_"),
        (["model._target_=nowhere.Model"], "model._target_ must be the dotted name of a class or function"),
        (
            ["+optimizer.betas=[0.9,1]"],
            "optimizer.betas must be a list of 2, each a number from 0 to below 1",
        ),
        (["scheduler=plateau", "scheduler.factor=1"], "scheduler: Factor should be < 1.0"),
    ],
)
def test_what_a_target_does_not_take_is_said(words, sentence):
    with pytest.raises(ConfigError) as caught:
        make_experiment(checked(composed("dataset=bonds", "dataset.graphs=8", *words)))
    assert str(caught.value).startswith(sentence)


def test_a_new_model_is_checked_by_what_its_signature_says(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from egin_dgl.models import GIN\n"
        "from egin_dgl.ranges import Fraction\n"
        "class Mine(GIN):\n"
        "    def __init__(self, info, share: Fraction = 0.5, free=None, **options):\n"
        "        super().__init__(info, **options)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    words = ["model=gin", "model._target_=mine.Mine", "dataset=bonds", "dataset.graphs=8"]
    assert make_experiment(checked(composed(*words, "+model.free={a: 1}"))).model == "GIN"
    with pytest.raises(ConfigError, match="model.share must be a number from 0 to 1, got 2"):
        checked(composed(*words, "+model.share=2"))
    with pytest.raises(
        ConfigError, match="model.mlp_layers must be a whole number"
    ):  # of the base of its base
        checked(composed(*words, "model.mlp_layers=0"))


@pytest.mark.parametrize("value", ["-1", "1.5", "abc", "null", "[]", "''", str(10**20)])
@pytest.mark.parametrize("option", ["n_trials", "n_jobs", "max_failure_rate", "study_name"])
def test_options_of_a_search_are_checked_before_it_starts(option, value):
    if (option, value) in {("study_name", "abc"), ("max_failure_rate", "null")}:
        check_words([f"hydra.sweeper.{option}={value}"], CONF)
        return
    with pytest.raises(ConfigError, match=f"hydra.sweeper.{option} must be "):
        check_words([f"hydra.sweeper.{option}={value}"], CONF)


def test_the_largest_sizes_that_are_taken_fit_into_memory():
    """Of the model that every width goes into; the bounds are there for this."""
    words = ["dataset=bonds", "dataset.graphs=8", "model.num_layers=1"]
    experiment = make_experiment(checked(composed(*words, "model.hidden_dim=4096", "model.edge_dim=4096")))
    network = experiment.recipe.make_model(experiment.dataset.info)
    assert isinstance(network, nn.Module)
    assert sum(parameter.nbytes for parameter in network.parameters()) < 500e6
