"""Readouts and heads of `GraphClassifier`, on MUTAG."""

import pytest
import torch

from egin_dgl.data import load_tu
from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.data.loader import assemble
from egin_dgl.models import EGIN, EGINC, EGINE, EGINM

MODELS = pytest.mark.parametrize("make", [EGIN, EGINC, EGINE, EGINM])


@pytest.fixture(scope="module")
def mutag():
    return load_tu("MUTAG")


def build(make, info, **options):
    torch.manual_seed(0)
    return make(info, hidden_dim=8, num_layers=3, **options).double().eval()


def logits(model, batch):
    return model(batch.graph, batch.node_feats.double(), batch.edge_feats.double())


@pytest.mark.parametrize("readout", ["sum", "mean", "max"])
def test_a_batch_equals_its_graphs_one_by_one(mutag, readout):
    model = build(EGINE, mutag.info, readout=readout)
    graphs = torch.tensor([5, 0, 117])
    together = logits(model, assemble(mutag, graphs))
    single = torch.cat([logits(model, assemble(mutag, graph[None])) for graph in graphs])
    torch.testing.assert_close(together, single)


@MODELS
def test_logits_are_the_sum_of_the_heads_of_all_depths(mutag, make):
    model = build(make, mutag.info)
    batch = assemble(mutag, torch.arange(4))
    inputs = (batch.graph, batch.node_feats.double(), batch.edge_feats.double())
    pooled = model.readouts(*inputs)
    assert len(pooled) == 1 + 3
    torch.testing.assert_close(
        pooled[0], torch.stack([g.ndata["feat"].sum(0) for g, _ in map(mutag.__getitem__, range(4))]).double()
    )
    expected = sum(head(g) for head, g in zip(model.heads, pooled, strict=True))
    torch.testing.assert_close(model(*inputs), expected)
    assert model.embed(*inputs).shape == (4, mutag.info.node_dim + 3 * 8)


@MODELS
def test_names_follow_the_paper(mutag, make):
    title = {EGIN: "EGIN", EGINC: "EGIN-C", EGINE: "EGIN-E", EGINM: "EGIN-M"}[make]
    assert make(mutag.info).name == title
    assert make(mutag.info, learn_eps=True).name == f"{title}-ε"


def test_invalid_values_are_rejected(mutag):
    with pytest.raises(ValueError, match="num_layers must be a positive integer, got 0"):
        EGIN(mutag.info, num_layers=0)
    with pytest.raises(ValueError, match="readout must be one of"):
        EGIN(mutag.info, readout="add")


@pytest.mark.parametrize(("task", "dropout"), [("multiclass", 0.5), ("multilabel", 0.5), ("regression", 0.0)])
def test_dropout_of_logits_follows_the_task_unless_it_is_given(task, dropout):
    info = DatasetInfo(3, 2, classes=2 * (task == "multiclass"), task=task, target_names=("y",))
    assert EGINE(info).dropout.p == dropout
    assert EGINE(info, dropout=0.2).dropout.p == 0.2
