"""Laws of every network in conf/model; a new YAML file is tested without a change here."""

from functools import cache
from pathlib import Path

import pytest
import torch
from graphs import make_graph
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from omegaconf import open_dict
from torch.nn.functional import cross_entropy

from egin_dgl.data import bonds
from egin_dgl.data.loader import assemble
from egin_dgl.models import GraphModel
from egin_dgl.runs.fold_dir import FoldDir

CONF = Path(__file__).resolve().parent.parent / "conf"
DATA = bonds(graphs=160)
SIZES = {"hidden_dim": 16, "num_layers": 2}  # of the models here, where they have these options


@cache
def composed(option):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("train", [f"model={option}"]).model


def networks():
    """Options of conf/model that are networks; kernel machines have separate tests."""
    options = sorted(path.stem for path in (CONF / "model").glob("*.yaml"))
    return [option for option in options if issubclass(instantiate(composed(option)).func, torch.nn.Module)]


def build(option, **options):
    """The shipped configuration with small sizes."""
    cfg = composed(option).copy()
    with open_dict(cfg):
        cfg.update({key: value for key, value in (SIZES | options).items() if key in cfg})
    torch.manual_seed(0)
    return instantiate(cfg)(DATA.info)


every_model = pytest.mark.parametrize("option", networks())


def settle(model):
    """In double precision and evaluation mode, with running statistics that differ from the initial ones."""
    model.double().train()
    for first in (0, 32):
        call(model, assemble(DATA, torch.arange(first, first + 32)))
    return model.eval()


def call(model, batch, **features):
    dtype = next(model.parameters()).dtype
    node_feats = features.get("node_feats", batch.node_feats).to(dtype)
    edge_feats = features.get("edge_feats", batch.edge_feats).to(dtype)
    return model(batch.graph, node_feats, edge_feats)


def graph_inputs(edges, nodes, info):
    """An undirected graph with random features."""
    random = torch.Generator().manual_seed(0)
    src, dst = torch.tensor(edges, dtype=torch.int64).view(-1, 2).T
    graph = make_graph((torch.cat([src, dst]), torch.cat([dst, src])), num_nodes=nodes)
    one_way = torch.rand(len(src), info.edge_dim, generator=random)
    node_feats = torch.randn(nodes, info.node_dim, generator=random)
    return graph, node_feats, torch.cat([one_way, one_way])


@every_model
def test_title_paper_and_use_are_given(option):
    model = build(option)
    assert isinstance(model, GraphModel)
    assert model.name.startswith(model.title) and model.paper and model.when
    assert "|" not in model.title + model.paper + model.when  # they become cells of a Markdown table
    assert sum(parameter.numel() for parameter in model.parameters()) > 0


@every_model
def test_permutation_of_nodes_and_edges_leaves_logits_equal(option):
    model = settle(build(option))
    graph, h, e = graph_inputs([(0, 1), (1, 2), (2, 3), (3, 0), (1, 4), (5, 3)], 7, DATA.info)
    h, e = h.double(), e.double()
    out = model(graph, h, e)
    src, dst = graph.edges()
    for seed in range(2):
        torch.manual_seed(seed)
        nodes, edges = torch.randperm(graph.num_nodes()), torch.randperm(graph.num_edges())
        place = nodes.argsort()  # node nodes[i] moves to i
        moved = make_graph((place[src[edges]], place[dst[edges]]), num_nodes=graph.num_nodes())
        torch.testing.assert_close(model(moved, h[nodes], e[edges]), out)


@every_model
def test_a_batch_equals_its_graphs_one_by_one(option):
    model = settle(build(option))
    graphs = torch.tensor([9, 0, 5, 30])
    together = call(model, assemble(DATA, graphs))
    torch.testing.assert_close(
        together, torch.cat([call(model, assemble(DATA, graph[None])) for graph in graphs])
    )
    batch = assemble(DATA, graphs)
    vectors = model.embed(batch.graph, batch.node_feats.double(), batch.edge_feats.double())
    assert vectors.ndim == 2 and len(vectors) == len(graphs)


ODD_GRAPHS = {
    "one node": ([], 1),
    "no edges": ([], 4),
    "an isolated node": ([(0, 1), (1, 2)], 4),
    "one edge": ([(0, 1)], 2),
}


@every_model
@pytest.mark.parametrize("training", [True, False])
def test_odd_graphs_have_finite_logits_and_gradients(option, training):
    for edges, nodes in ODD_GRAPHS.values():
        model = build(option).train(training)
        out = model(*graph_inputs(edges, nodes, DATA.info))
        assert out.shape == (1, DATA.info.classes)
        cross_entropy(out, torch.tensor([1])).backward()
        assert finite(out, *gradients(model).values())


@every_model
def test_zero_and_huge_edge_features_give_finite_logits_and_gradients(option):
    batch = assemble(DATA, torch.arange(16))
    for scale in (0.0, 1e4, -1e4):
        model = build(option).train()
        out = call(model, batch, edge_feats=scale * torch.rand_like(batch.edge_feats))
        cross_entropy(out, batch.labels).backward()
        assert finite(out, *gradients(model).values())
        model.eval()
        assert finite(call(model, batch, edge_feats=torch.full_like(batch.edge_feats, scale)))


def finite(*tensors):
    return all(tensor.isfinite().all() for tensor in tensors)


def gradients(model):
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@every_model
def test_gradients_reach_every_parameter(option):
    model = build(option, learn_eps=True).double().train()
    batch = assemble(DATA, torch.arange(63))  # enough that dropout leaves some of every depth
    node_feats, edge_feats = torch.randn_like(batch.node_feats), torch.randn_like(batch.edge_feats)
    cross_entropy(call(model, batch, node_feats=node_feats, edge_feats=edge_feats), batch.labels).backward()
    seen = gradients(model)
    without = [name for name, _ in model.named_parameters() if name not in seen or not seen[name].any()]
    # Batch normalisation subtracts the mean, and with it any bias before it: its gradient is rounding only.
    assert [name for name in without if not name.endswith("bias")] == []


@every_model
def test_half_precision_is_close_to_single(option):
    model = settle(build(option)).float()
    batch = assemble(DATA, torch.arange(8))
    exact = call(model, batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = call(model, batch)
        cross_entropy(call(model.train(), batch).float(), batch.labels).backward()
    assert finite(half, *gradients(model).values())
    torch.testing.assert_close(half.float(), exact, rtol=0.1, atol=0.1 * (1 + exact.abs().max().item()))


@every_model
def test_saved_and_loaded_weights_give_equal_logits(option, tmp_path):
    model = settle(build(option))
    FoldDir(tmp_path, 0).save_weights(model, {"epoch": 3})
    torch.manual_seed(1)
    again = build(option).double().eval()
    with torch.no_grad():
        for parameter in again.parameters():
            parameter.add_(1)
    assert FoldDir(tmp_path, 0).load_weights(again) == {"epoch": 3}
    batch = assemble(DATA, torch.arange(4))
    assert torch.equal(call(again, batch), call(model, batch))


QUICK = ("egin_e", "gin", "mlp_bag")  # the others take longer to train


@pytest.mark.parametrize(
    "option", [pytest.param(o, marks=[] if o in QUICK else [pytest.mark.slow]) for o in networks()]
)
def test_only_models_that_see_edges_and_structure_learn_bonds(numbers, option):
    """The two classes differ only in the positions of bonds, which neither edge features nor structure alone show."""
    model = build(option, dropout=0.0)
    if model.uses_edges and model.uses_structure:
        train, test = (
            assemble(DATA, torch.arange(first, last)) for first, last in ((0, 120), (120, len(DATA)))
        )
        assert fit(model, train) == accuracy(model, test) == 1
    else:
        # Graphs 2i and 2i + 1 share a skeleton and have one class each.
        settle(model)
        alternating, scrambled = (assemble(DATA, torch.arange(first, len(DATA), 2)) for first in (0, 1))
        assert alternating.labels.unique().item() != scrambled.labels.unique().item()
        assert torch.equal(call(model, alternating), call(model, scrambled))


@every_model
def test_uses_edges_is_true_of_models_that_depend_on_edge_features(option):
    model = settle(build(option))
    batch = assemble(DATA, torch.arange(32))
    other = call(model, batch, edge_feats=torch.rand_like(batch.edge_feats))
    assert torch.equal(call(model, batch), other) == (not model.uses_edges)


@every_model
def test_uses_structure_is_true_of_models_that_depend_on_the_structure(option):
    model = settle(build(option))
    path, star = [(i, i + 1) for i in range(19)], [(0, i + 1) for i in range(19)]
    inputs = (graph_inputs(edges, 20, DATA.info) for edges in (path, star))
    one, two = (model(graph, h.double(), e.double()) for graph, h, e in inputs)
    assert torch.allclose(one, two) == (not model.uses_structure)


def fit(model, batch, steps=300):
    """Train until every graph of the batch is classified correctly, with some margin; the accuracy reached."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(1, steps + 1):
        model.train()
        optimizer.zero_grad()
        cross_entropy(call(model, batch), batch.labels).backward()
        optimizer.step()
        if step % 10 == 0:
            with torch.no_grad():
                logits = call(model.eval(), batch)
            correct = (logits.argmax(1) == batch.labels).all()
            if correct and cross_entropy(logits, batch.labels) < 0.02:
                break
    return accuracy(model, batch)


@torch.no_grad()
def accuracy(model, batch):
    model.eval()
    return (call(model, batch).argmax(1) == batch.labels).double().mean().item()
