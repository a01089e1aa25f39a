"""Every shipped YAML composes, and every model, optimizer and scheduler takes one step."""

from pathlib import Path

import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from omegaconf import OmegaConf

from egin_dgl.data import bonds
from egin_dgl.data.loader import assemble
from egin_dgl.training.options import TrainerOptions

CONF = Path(__file__).resolve().parent.parent / "conf"


# What has no default.
NEEDED = {"tu": ["dataset.name=X"]} | {group: ["dataset.path=X"] for group in ("csv", "smiles", "graphs")}


def options(group):
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def composed(*overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("train", list(overrides))


@pytest.mark.parametrize(
    "choice", [(g, o) for g in ("cv", "trainer", "ewl", "dataset") for o in options(g)], ids="=".join
)
def test_every_option_composes(choice):
    cfg = composed("=".join(choice), *NEEDED.get(choice[1], ()))
    OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    TrainerOptions(**cfg.trainer)


@pytest.mark.parametrize("model", options("model"))
@pytest.mark.parametrize("optimizer", options("optimizer"))
@pytest.mark.parametrize("scheduler", options("scheduler"))
def test_every_combination_takes_a_step(numbers, model, optimizer, scheduler):
    cfg = composed(f"model={model}", f"optimizer={optimizer}", f"scheduler={scheduler}")
    data = bonds(graphs=8)
    network = instantiate(cfg.model)(data.info)
    if not isinstance(network, torch.nn.Module):
        assert network.penalties  # fitted once for each, without optimizer or scheduler
        return
    steps = instantiate(cfg.optimizer)(network.parameters())
    rates = instantiate(cfg.scheduler)(steps)
    batch = assemble(data, torch.arange(7))  # classes unequal, or the majority would have nothing to learn
    before = [parameter.detach().clone() for parameter in network.parameters()]
    loss = torch.nn.functional.cross_entropy(
        network(batch.graph, batch.node_feats, batch.edge_feats), batch.labels
    )
    loss.backward()
    steps.step()
    rates.step(loss.item()) if scheduler == "plateau" else rates.step()
    assert any(not torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))


def test_the_twelve_datasets_of_the_paper_are_there():
    names = {
        composed(f"dataset={option}").dataset.get("name") for option in options("dataset") if option != "tu"
    }
    paper = {"MUTAG", "AIDS", "COX2_MD", "Cuneiform", "ER_MD", "PTC_FM", "PTC_FR", "PTC_MM", "PTC_MR"}
    paper |= {f"Tox21_{assay}_evaluation" for assay in ("AhR", "AR", "ARE")}
    assert paper <= names
