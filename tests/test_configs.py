"""Every shipped YAML file composes, and every model, optimizer and scheduler takes one step."""

import re
from pathlib import Path

import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from egin_dgl.cli.config_dirs import list_choices
from egin_dgl.cli.experiment import build
from egin_dgl.cli.help import help_page
from egin_dgl.cli.validation import resolve_settings, validate_settings
from egin_dgl.data import bonds
from egin_dgl.data.loader import assemble

CONF = Path(__file__).resolve().parent.parent / "conf"
# Options without a default.
REQUIRED = {"tu": ["dataset.name=X"]} | {name: ["dataset.path=X"] for name in ("csv", "smiles", "graphs")}
PAPER = {"MUTAG", "AIDS", "COX2_MD", "Cuneiform", "ER_MD", "PTC_FM", "PTC_FR", "PTC_MM", "PTC_MR"}
PAPER |= {f"Tox21_{assay}_evaluation" for assay in ("AhR", "AR", "ARE")}


def composed(*overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("train", list(overrides))


@pytest.mark.parametrize("group", ["cv", "trainer", "ewl", "dataset"])
def test_every_choice_is_valid(group):
    settings = {}
    for choice in list_choices(group, CONF):
        cfg = composed(f"{group}={choice}", *REQUIRED.get(choice, ()))
        settings[choice] = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
        validate_settings(settings[choice])
    if group == "dataset":
        assert {one["dataset"].get("name") for one in settings.values()} >= PAPER


@pytest.mark.parametrize(
    "choice",
    [(group, name) for group in ("model", "optimizer", "scheduler") for name in list_choices(group, CONF)],
    ids="=".join,
)
def test_every_choice_takes_a_step(numbers, choice):
    settings = resolve_settings(composed("=".join(choice)))
    dataset = bonds(graphs=8)
    network = build(settings, "model")(dataset.info)
    if not isinstance(network, torch.nn.Module):
        assert network.candidates  # fitted for each by scikit-learn, without optimizer or scheduler
        return
    optimizer = build(settings, "optimizer")(network.parameters())
    scheduler = build(settings, "scheduler")(optimizer)
    batch = assemble(dataset, torch.arange(7))  # classes unequal, or the majority would have nothing to learn
    before = [parameter.detach().clone() for parameter in network.parameters()]
    logits = network(batch.graph, batch.node_feats, batch.edge_feats)
    loss = torch.nn.functional.cross_entropy(logits, batch.labels)
    loss.backward()
    optimizer.step()
    scheduler.step(*([loss.item()] if choice[1] == "plateau" else []))
    assert any(not torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))


def test_help_explains_every_option():
    for overrides in ([], ["cv=nested", "dataset=csv", "dataset.path=X", "ewl=colors", "scheduler=plateau"]):
        cfg = composed(*overrides)
        lines = dict((line.split("=")[0].strip(), line) for line in help_page(overrides).splitlines())
        for group in ("trainer", "cv", "dataset", "ewl", "scheduler", "optimizer"):
            for name in cfg[group]:
                if not name.startswith("_") and (group, name) not in {("trainer", "model"), ("cv", "grid")}:
                    assert re.fullmatch(r"\s+\S+=\S.* \S.*", lines[f"{group}.{name}"]), (
                        name
                    )  # default and comment
            assert (
                lines[group].startswith(f"{group}=") and ", ".join(list_choices(group, CONF)) in lines[group]
            )
    assert lines["trainer.model.mlp_dropout"].split() == [
        "trainer.model.mlp_dropout=0.0",
        "dropout",
        "inside",
        "the",
        "MLPs",
        "of",
        "layers",
    ]
    assert lines["dataset.path"].strip().startswith("dataset.path=X ")
    assert lines["seed"].split("=", 1)[1].startswith("0 ")
