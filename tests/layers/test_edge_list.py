"""Everything on an EdgeList equals the same on a DGLGraph: values and gradients, on odd graphs."""

import pytest
import torch
from hydra.utils import instantiate
from odd_graphs import SHAPES, odd_dataset
from test_zoo import SIZES, composed, every_model
from torch import nn

from egin_dgl.data.edge_list import EdgeList
from egin_dgl.data.loader import assemble
from egin_dgl.layers import aggregate, readout
from egin_dgl.layers.gat import EdgeGATConv, GATConv
from egin_dgl.layers.pna import PNAConv

dgl = pytest.importorskip("dgl", reason="DGL is not installed")

NODES = [3, 0, 5, 1, 2]  # nodes of each graph: one has none
EDGES = [
    [(0, 1), (0, 1), (1, 0), (2, 2)],
    [],
    [(0, 1), (3, 1)],
    [(0, 0), (0, 0)],
    [],
]  # parallel edges, loops


def both_graphs(nodes=NODES, edges=EDGES):
    """The same batch as a DGLGraph and as an EdgeList."""
    first = torch.tensor([0, *nodes]).cumsum(0).tolist()
    pairs = [(i + start, j + start) for start, some in zip(first[:-1], edges, strict=True) for i, j in some]
    src, dst = torch.tensor(pairs, dtype=torch.int64).view(-1, 2).T
    sizes = [
        torch.tensor(counts, dtype=torch.int64) for counts in (list(nodes), [len(some) for some in edges])
    ]
    theirs = dgl.graph((src, dst), num_nodes=sum(nodes))
    theirs.set_batch_num_nodes(sizes[0])
    theirs.set_batch_num_edges(sizes[1])
    return theirs, EdgeList(src, dst, sum(nodes), *sizes)


def rows(count, *shape):
    return torch.randn(count, *shape, dtype=torch.float64, requires_grad=True)


def same_values_and_gradients(call, graphs, inputs):
    """`call(graph, *inputs)` on both graphs."""
    results = []
    for graph in graphs:
        found = call(graph, *inputs)
        weights = torch.linspace(-1, 1, found.numel(), dtype=found.dtype).view_as(found)
        gradients = torch.autograd.grad((found * weights).sum(), inputs, allow_unused=True)
        results.append([found, *(x for x in gradients if x is not None)])
    assert len(results[0]) == len(results[1]) > 1
    for theirs, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


N, E = sum(NODES), sum(map(len, EDGES))
PRIMITIVES = {
    "neighbors": (aggregate.sum_neighbors, [(N, 4)]),
    "edges": (aggregate.sum_edges, [(E, 3)]),
    "weighted": (aggregate.sum_weighted, [(N, 1, 4), (E, 3, 1)]),
    "cross": (aggregate.sum_cross, [(N, 4), (E, 3)]),
    "ends": (aggregate.add_ends, [(N, 4), (N, 4)]),
    "softmax": (aggregate.edge_softmax, [(E, 2, 1)]),
    "loops": (lambda graph, e: aggregate.add_self_loops(graph, e)[1], [(E, 3)]),
    "sum": (readout.SumPooling(), [(N, 4)]),
    "mean": (readout.MeanPooling(), [(N, 4)]),
    "max": (readout.MaxPooling(), [(N, 4)]),
    "edges of graphs": (readout.pool_edges, [(E, 3)]),
    "reversed": (lambda graph, e: aggregate.sum_edges(graph.reverse(), e), [(E, 3)]),
    "GAT": (GATConv(4, 3, 2).double(), [(N, 4)]),
    "EdgeGAT": (EdgeGATConv(4, 3, 5, 2).double(), [(N, 4), (E, 3)]),
    "PNA": (PNAConv(4, 3, 4, 1.1).double(), [(N, 4), (E, 3)]),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_primitive_equals_that_of_dgl(name):
    torch.manual_seed(0)
    call, shapes = PRIMITIVES[name]
    graphs = both_graphs()
    if "GAT" in name:  # without a self-loop, a softmax over no edge
        looped = [aggregate.add_self_loops(graph, torch.zeros(E, 1)) for graph in graphs]
        graphs = [graph for graph, _ in looped]
        shapes = [shape if shape[0] == N else (len(looped[0][1]), *shape[1:]) for shape in shapes]
    same_values_and_gradients(call, graphs, [rows(*shape) for shape in shapes])


def test_sorted_nodes_equal_those_of_dgl():
    """Without the graph of no nodes, which DGL 1.1.3 gives the nodes of the next graph."""
    graphs = both_graphs(NODES[:1] + NODES[2:], EDGES[:1] + EDGES[2:])
    same_values_and_gradients(lambda graph, z: readout.sort_nodes(graph, z, 3), graphs, [rows(N, 4)])
    z = torch.arange(float(N)).unsqueeze(1)
    found = readout.sort_nodes(both_graphs()[1], z, 3).squeeze(2)
    assert found.tolist() == [[2, 1, 0], [0, 0, 0], [7, 6, 5], [8, 0, 0], [10, 9, 0]]


def test_maxima_of_equal_values_have_the_gradient_of_dgl():
    """Of one of them, not a share of each."""
    ties = torch.ones(N, 2, dtype=torch.float64, requires_grad=True)
    same_values_and_gradients(readout.MaxPooling(), both_graphs(), [ties])
    equal = torch.ones(E, 3, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    layer = PNAConv(4, 3, 4, 1.1).double()
    h = torch.ones(N, 4, dtype=torch.float64, requires_grad=True)
    same_values_and_gradients(layer, both_graphs(), [h, equal])


@pytest.mark.parametrize("known", [True, False])
def test_self_loops_are_added_where_there_is_none(known):
    theirs, ours = both_graphs()
    ours = EdgeList(ours.src, ours.dst, ours.nodes, looped_nodes=2 if known else None)
    e = torch.rand(E, 3)
    found, expected = aggregate.add_self_loops(ours, e), aggregate.add_self_loops(theirs, e)
    assert torch.equal(torch.stack(found[0].edges()), torch.stack(expected[0].edges()))
    assert torch.equal(found[1], expected[1])


def test_graphs_without_edges_and_batches_without_graphs():
    for nodes, edges in [((2, 1), ((), ())), ((), ())]:
        theirs, ours = both_graphs(nodes, edges)
        h, e = rows(sum(nodes), 4), rows(0, 3)
        assert torch.equal(aggregate.sum_neighbors(ours, h), aggregate.sum_neighbors(theirs, h))
        assert torch.equal(aggregate.sum_edges(ours, e), torch.zeros(sum(nodes), 3, dtype=e.dtype))
        assert readout.SumPooling()(ours, h).shape == (len(nodes), 4)
        assert readout.sort_nodes(ours, h, 3).shape == (len(nodes), 3, 4)


def test_sizes_and_degrees_equal_those_of_dgl():
    theirs, ours = both_graphs()
    for name in ("in_degrees", "batch_num_nodes", "batch_num_edges"):
        assert torch.equal(getattr(ours, name)(), getattr(theirs, name)()), name
    assert (ours.num_nodes(), ours.num_edges(), ours.batch_size) == (N, E, theirs.batch_size)
    assert ours.graph_of_node.tolist() == [g for g, size in enumerate(NODES) for _ in range(size)]


def test_what_only_dgl_has_is_refused_in_one_sentence():
    with pytest.raises(
        AttributeError, match="an EdgeList has no 'update_all': a model that needs a DGLGraph"
    ):
        both_graphs()[1].update_all(None, None)


def as_edge_list(graph):
    src, dst = graph.edges()
    return EdgeList(src, dst, graph.num_nodes(), graph.batch_num_nodes(), graph.batch_num_edges())


@every_model
@pytest.mark.parametrize("shape", SHAPES)
def test_a_model_on_edge_lists_equals_the_model_on_dgl_graphs(option, shape):
    dataset = odd_dataset(shape, copies=3).with_training_statistics(torch.arange(3))
    torch.manual_seed(0)
    cfg = composed(option).copy()
    model = instantiate(cfg, **{key: value for key, value in SIZES.items() if key in cfg})(dataset.info)
    model.double().train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    batch = assemble(dataset, torch.arange(len(dataset)))
    results = []
    for graph in (batch.graph, as_edge_list(batch.graph)):
        model.zero_grad()
        logits = model(graph, batch.node_feats, batch.edge_feats)
        nn.functional.cross_entropy(logits, batch.labels).backward()
        results.append(
            [logits, *(torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters())]
        )
    for theirs, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9)


def test_sums_of_half_precision_are_computed_in_single_precision():
    for graph in both_graphs():
        assert aggregate.sum_neighbors(graph, rows(N, 4).to(torch.bfloat16)).dtype == torch.float32
