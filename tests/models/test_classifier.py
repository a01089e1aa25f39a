"""Laws of every EGIN variant as a whole model, on real MUTAG and on generated graphs."""

import dgl
import pytest
import torch

from egin_dgl.data import bonds, load_tu
from egin_dgl.data.loader import assemble
from egin_dgl.models import EGIN, EGINC, EGINE

MODELS = pytest.mark.parametrize("make", [EGIN, EGINC, EGINE])


@pytest.fixture(scope="module")
def mutag():
    return load_tu("MUTAG")


def build(make, info, **options):
    torch.manual_seed(0)
    return make(info, hidden_dim=8, num_layers=3, **options).double().eval()


def logits(model, batch):
    return model(batch.graph, batch.node_feats.double(), batch.edge_feats.double())


@MODELS
@pytest.mark.parametrize("readout", ["sum", "mean", "max"])
def test_a_batch_equals_its_graphs_one_by_one(mutag, make, readout):
    model = build(make, mutag.info, readout=readout)
    graphs = torch.tensor([5, 0, 117])
    together = logits(model, assemble(mutag, graphs))
    single = torch.cat([logits(model, assemble(mutag, graph[None])) for graph in graphs])
    torch.testing.assert_close(together, single)


@MODELS
def test_scores_are_the_sum_of_a_linear_map_of_each_depth(mutag, make):
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
def test_isomorphic_copies_get_equal_scores(make):
    data = bonds(graphs=4)
    model = build(make, data.info)
    graph, _ = data[1]
    order = torch.randperm(graph.num_nodes())
    place = order.argsort()
    src, dst = graph.edges()
    copy = dgl.graph((place[src], place[dst]), num_nodes=graph.num_nodes())
    h, e = graph.ndata["feat"].double(), graph.edata["feat"].double()
    torch.testing.assert_close(model(copy, h[order], e), model(graph, h, e))


@MODELS
def test_names_follow_the_paper(mutag, make):
    title = {EGIN: "EGIN", EGINC: "EGIN-C", EGINE: "EGIN-E"}[make]
    assert make(mutag.info).name == title
    assert make(mutag.info, learn_eps=True).name == f"{title}-ε"


@MODELS
def test_gradients_reach_every_parameter(mutag, make):
    model = build(make, mutag.info, learn_eps=True).train()
    logits(model, assemble(mutag, torch.arange(16))).logsumexp(1).sum().backward()
    still = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().any()]
    # Before batch normalisation a bias has no effect: its gradient is rounding noise or zero.
    assert [name for name in still if not name.endswith("bias")] == []


def test_wrong_values_name_the_valid_ones(mutag):
    with pytest.raises(ValueError, match="layers must be a positive integer, got 0"):
        EGIN(mutag.info, num_layers=0)
    with pytest.raises(ValueError, match="readout must be one of"):
        EGIN(mutag.info, readout="add")
