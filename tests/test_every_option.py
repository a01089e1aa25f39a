"""Every option of every YAML file: an invalid value is refused in one sentence, a valid one builds."""

import math

import pytest
import torch
from graphs import dgl
from omegaconf import OmegaConf
from running import BONDS, ROOT, composed, replaced, settings_of

from egin_dgl.cli.experiment import build, make_experiment
from egin_dgl.cli.validation import (
    OPTION_GROUPS,
    TARGET_GROUPS,
    validate_group,
)
from egin_dgl.errors import ConfigError, EginError
from egin_dgl.training.options import RunOptions

CONF = ROOT / "conf"
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
    | {"model.radius"}
    | {"ewl.depth", "ewl.decimals", "optimizer.momentum", "scheduler.factor", "scheduler.patience"}
    | {"trainer.model.mlp_dropout", "trainer.ema_decay", "trainer.warmup_epochs", "cv.fold", "dataset.seed"}
    | {"dataset.shuffle_seed"}
    | UNBOUNDED - {"trainer.clip_grad_norm"},
    10**20: UNBOUNDED,
    None: {f"{group}.{name}" for group, names in NULLABLE.items() for name in names}
    | {f"dataset.expect.{size}" for size in ("graphs", "classes", "node_dim", "edge_dim")},
    True: {"model.learn_eps", "model.scale_by_size", "model.normalize", "model.attributes"}
    | {"ewl.attributes", "trainer.standardize", "trainer.fast"}
    | {"trainer.model.scale_by_size", "cv.validation", "cv.group_duplicates", "cv.refit", "cv.holdout"},
}


def list_keys(options, prefix=()):
    for name, value in options.items():
        if not name.startswith("_"):
            yield (*prefix, name)
            if isinstance(value, dict):
                yield from list_keys(value, (*prefix, name))


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
