"""Graphs of DGL, networkx and PyG give the same dataset, with errors that name graph and column."""

from enum import Enum

import networkx as nx
import numpy as np
import pytest
import torch
from graphs import dgl

from egin_dgl.data import GraphDataset, load_tu
from egin_dgl.data.dataset import TENSORS
from egin_dgl.data.readers.search_path import find_raw
from egin_dgl.data.readers.tu import read_tu
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.ewl import WLKernel, as_graph_set, audit, refine

# --- MUTAG as graphs of three libraries -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def mutag():
    return load_tu("MUTAG")


@pytest.fixture(scope="module")
def raw():
    return read_tu(find_raw("MUTAG", url=None))


def pieces(raw):
    """(node labels, edges, edge labels) of each graph, numbers from 0."""
    for graph in range(raw.graphs):
        nodes = np.flatnonzero(raw.node_graph == graph)
        edges = np.flatnonzero(raw.node_graph[raw.src] == graph)
        ends = np.stack([raw.src[edges], raw.dst[edges]]) - nodes[0]
        yield raw.nodes.labels[nodes, 0], ends, raw.edges.labels[edges, 0]


def as_dgl(atoms, ends, bonds):
    graph = dgl.graph(tuple(torch.from_numpy(ends)), num_nodes=len(atoms))
    graph.ndata["atom"], graph.edata["bond"] = torch.from_numpy(atoms), torch.from_numpy(bonds)
    return graph


def as_networkx(atoms, ends, bonds):
    graph = nx.DiGraph()  # which keeps the order of the edges, as a Graph would not
    graph.add_nodes_from((i, {"atom": atom}) for i, atom in enumerate(atoms.tolist()))
    graph.add_edges_from(
        (u, v, {"bond": bond}) for u, v, bond in zip(*ends.tolist(), bonds.tolist(), strict=True)
    )
    return graph


def as_pyg(atoms, ends, bonds):
    data = pytest.importorskip("torch_geometric.data").Data
    return data(
        x=torch.from_numpy(atoms), edge_index=torch.from_numpy(ends), edge_attr=torch.from_numpy(bonds)
    )


def edges_of(dataset):
    """Edges with their features in one order."""
    rows = torch.cat([dataset.src[:, None], dataset.dst[:, None], dataset.edge_feats], dim=1)
    return sorted(map(tuple, rows.tolist()))


@pytest.mark.parametrize("wrap", [as_dgl, as_networkx, as_pyg], ids=lambda wrap: wrap.__name__)
def test_mutag_of_each_library_equals_mutag(mutag, raw, wrap):
    again = GraphDataset.from_graphs([wrap(*piece) for piece in pieces(raw)], raw.targets[:, 0], name="MUTAG")
    for key in set(TENSORS) - {"src", "dst", "edge_feats"}:
        assert torch.equal(getattr(again, key), getattr(mutag, key)), key
    assert edges_of(again) == edges_of(mutag)
    values = [name.partition("=")[2] for name in mutag.info.node_names]
    assert [name.partition("=")[2] for name in again.info.node_names] == values
    assert again.info.class_names == mutag.info.class_names and again.ids[:2] == ("0", "1")
    assert again.digest and again.info.node_dim == 7 and again.info.edge_dim == 4


def test_undirected_networkx_graphs_have_both_directions(mutag, raw):
    graphs = [nx.Graph(as_networkx(*piece)) for piece in pieces(raw)]
    again = GraphDataset.from_graphs(graphs, raw.targets[:, 0])
    assert edges_of(again) == edges_of(mutag) and not again.notes


@pytest.mark.parametrize("wrap", [as_networkx, as_pyg], ids=lambda wrap: wrap.__name__)
def test_refinement_takes_them_too(mutag, raw, wrap):
    graphs = [wrap(*piece) for piece in pieces(raw)][:40]
    plain = as_graph_set(mutag).subset(range(40))
    colors = [refine(x, depth=3, method="e-wl").colors for x in (plain, graphs)]
    assert (
        len(np.unique(np.stack([c[-1] for c in colors]), axis=1).T) == colors[0][-1].max() + 1
    )  # the same classes
    counts = [WLKernel(depth=2).fit_transform(x) for x in (plain, graphs)]
    assert np.array_equal(*((x @ x.T).toarray() for x in counts))
    classes = mutag.labels.numpy()[:40]
    assert audit(graphs, depth=1, labels=classes).levels == audit(plain, depth=1, labels=classes).levels


# --- kinds of columns ----------------------------------------------------------------------------------------------


def path(**more):
    """C - N - C with a bond of each kind, and further node attributes."""
    graph = nx.path_graph(3)
    for node, atom in enumerate("CNC"):
        graph.nodes[node].update(atom=atom, **{key: values[node] for key, values in more.items()})
    graph.edges[0, 1]["order"], graph.edges[1, 2]["order"] = 1.0, 1.5
    return graph


def test_reals_are_attributes_and_the_rest_labels():
    graphs = [path(charge=[0.5, 0, 1], ring=[True, False, True], bonds=[1, 2, 1])] * 2
    data = GraphDataset.from_graphs(graphs, ["toxic", "harmless"], ids=["a", 7])
    assert data.info.node_names == (
        *("charge", "atom=C", "atom=N", "ring=False", "ring=True", "bonds=1", "bonds=2"),
    )
    assert data.node_feats[1].tolist() == [0, 0, 1, 1, 0, 0, 1]
    assert data.info.edge_names == ("order",) and sorted(data.edge_feats[:4, 0].tolist()) == [1, 1, 1.5, 1.5]
    assert data.info.class_names == ("harmless", "toxic") and data.labels.tolist() == [1, 0]
    assert data.ids == ("a", "7")


def test_selected_columns():
    graphs = [path(charge=[0.0, 1.0, -1.0], bonds=[1, 2, 1])] * 2
    data = GraphDataset.from_graphs(
        graphs, [0, 1], node_labels="charge", node_attributes=["bonds"], edge_labels=[]
    )
    assert data.info.node_names == ("bonds", "charge=-1", "charge=0", "charge=1")
    assert data.info.edge_names == ("constant",)
    with pytest.raises(ConfigError, match="'atom' is selected twice"):
        GraphDataset.from_graphs(graphs, [0, 1], node_labels=["atom"], node_attributes=["atom"])


def test_a_field_of_several_columns():
    graph = dgl.graph(([0, 1], [1, 0]))
    graph.ndata["feat"] = torch.tensor([[3, 1], [4, 1]])
    graph.edata["w"], graph.edata["flag"] = torch.tensor([[0.5], [0.25]]), torch.tensor([True, False])
    graph.ndata[dgl.NID] = torch.arange(2)
    data = GraphDataset.from_graphs([graph, graph], torch.tensor([[1], [0]]))
    assert data.info.node_names == ("feat0=3", "feat0=4", "feat1=1")
    assert data.info.edge_names == ("w", "flag=False", "flag=True") and data.labels.tolist() == [1, 0]


def test_large_integers_stay_what_they_are():
    graphs = [path(number=[2**53 + 1, 2**53, 2**70])] * 2
    data = GraphDataset.from_graphs(graphs, [0, 1], node_labels=["number"])
    assert data.info.node_names == tuple(f"number={n}" for n in (2**53, 2**53 + 1, 2**70))
    with pytest.raises(
        DataError, match=f"graph 0, node 0: node column 'number' holds {2**53 + 1}, an integer too large"
    ):
        GraphDataset.from_graphs(graphs, [0, 1], node_attributes=["number"])


class Taste(Enum):
    sweet = 1
    bitter = 2


@pytest.mark.parametrize(
    ("labels", "names", "numbers"),
    [
        ([True, False], ("False", "True"), [1, 0]),
        (np.array(["b", "a"]), ("a", "b"), [1, 0]),
        ([np.int64(10), np.int64(9)], ("9", "10"), [1, 0]),
        (torch.tensor([1.0, 0.0]), ("0", "1"), [1, 0]),
        ([Taste.sweet, Taste.bitter], ("bitter", "sweet"), [1, 0]),
        ([b"two", b"one"], ("one", "two"), [1, 0]),
        (None, (), [-1, -1]),
    ],
)
def test_types_of_classes(labels, names, numbers):
    data = GraphDataset.from_graphs([path(), path()], labels)
    assert data.info.class_names == names and data.labels.tolist() == numbers


def test_pairs_and_multigraphs():
    graph = nx.MultiGraph([(0, 1, {"kind": "a"}), (0, 1, {"kind": "b"}), (1, 1, {"kind": "a"})])
    data = GraphDataset.from_graphs([(graph, "x"), (graph, "y")], self_loops="keep")
    assert data.info.class_names == ("x", "y") and data.edge_offsets.tolist() == [0, 5, 10]


def test_graph_without_edges_needs_no_edge_columns():
    alone = nx.Graph()
    alone.add_node(0, atom="C")
    data = GraphDataset.from_graphs([path(), alone], [0, 1])
    assert data.edge_offsets.tolist() == [0, 4, 4] and data.info.edge_names == ("order",)


def test_new_graphs_are_encoded_as_the_training_set():
    old = GraphDataset.from_graphs([path(), path()], ["x", "y"])
    selenium = path()
    selenium.nodes[0]["atom"] = "Se"
    new = GraphDataset.from_graphs([selenium, path()], ["y", None], vocabulary=old.vocabulary, info=old.info)
    assert new.node_feats.tolist()[:3] == [[0, 0], [0, 1], [1, 0]] and new.labels.tolist() == [1, -1]
    assert new.unseen == {"node atom=Se": 1}
    fewer = GraphDataset.from_graphs([path(), path(), path()], ["y", None, "x"])
    assert fewer.ids == ("0", "2") and fewer.labels.tolist() == [1, 0] and len(fewer.node_feats) == 6
    assert fewer.notes == ("1 graph(s) without a label left out: graph 1",)


# --- errors -------------------------------------------------------------------------------------------


def without(node, name):
    graph = path()
    del graph.nodes[node][name]
    return graph


def bare():
    return nx.path_graph(3)


BAD = {
    "nothing": ([], [], "there are no graphs"),
    "no graph": ([3], [0], "graph 0 is a int, where a DGLGraph"),
    "mixed": (
        [path(), dgl.graph(([0], [1]))],
        [0, 1],
        "graph 1 is a DGL graph, where a networkx graph is needed",
    ),
    "without nodes": ([path(), nx.Graph()], [0, 1], "graph 1 has no nodes"),
    "few labels": ([path()], [0, 1], "there are 1 graphs and 2 labels"),
    "a node lacks it": ([path(), without(2, "atom")], [0, 1], "graph 1: node 2 has no 'atom'"),
    "a graph lacks it": (
        [path(), path(), bare()],
        [0, 1, 0],
        "graph 2 has no node column 'atom', only none",
    ),
    "nested": ([path(), path(x=[[1], [2], [3]])], [0, 1], "graph 0 has no node column 'x'"),
    "nested value": (
        [path(x=[1, [2], 3])],
        [0],
        "graph 0, node 1: node column 'x' holds [2], expected a number",
    ),
    "none": ([path(x=[None, 2, 3])], [0], "graph 0, node 0: node column 'x' holds None"),
    "nan": (
        [path(x=[0.5, 2, float("nan")])],
        [0],
        "graph 0, node 2: node column 'x' holds nan, which is not",
    ),
    "inf": (
        [path(x=[1.0] * 3), path(x=[1.0, 1e39, 1.0])],
        [0, 1],
        "graph 1, node 1: node column 'x' holds 1e+39",
    ),
    "string among reals": (
        [path(x=[0.5, "?", 1])],
        [0],
        "graph 0, node 1: node column 'x' holds '?' among real",
    ),
    "no class": (
        [path()],
        [{1}],
        "graph 0 has the label {1}; a label is an integer, a real number or a string",
    ),
    "two widths": ([path(), path()], [[0, 1], 1], "graph 1 has 1 target(s), another graph has 2"),
    "labels no list": ([path()], "x", "labels must be a list"),
}


@pytest.mark.parametrize(("graphs", "labels", "message"), BAD.values(), ids=BAD.keys())
def test_errors_name_graph_and_column(graphs, labels, message):
    with pytest.raises(DataError) as caught:
        GraphDataset.from_graphs(graphs, labels)
    assert str(caught.value).startswith(message) and "\n" not in str(caught.value)


def test_errors_of_dgl_and_pyg():
    plain = dgl.graph(([0], [1]))
    with pytest.raises(DataError, match="graph 0: it is a batch of 2; dgl.unbatch gives the graphs"):
        GraphDataset.from_graphs([dgl.batch([plain, plain])], [0])
    with pytest.raises(DataError, match="graph 1: it is heterogeneous"):
        GraphDataset.from_graphs([plain, dgl.heterograph({("a", "to", "b"): ([0], [0])})], [0, 1])
    other = dgl.graph(([0], [1]))
    plain.ndata["x"], other.ndata["x"] = torch.zeros(2, 3), torch.zeros(2, 4)
    with pytest.raises(
        DataError, match=r"graph 1: node column 'x' has the shape \[2, 4\], graph 0 has \[2, 3\]"
    ):
        GraphDataset.from_graphs([plain, other], [0, 1])
    data = pytest.importorskip("torch_geometric.data").Data
    edges = torch.tensor([[0, 1], [1, 5]])
    with pytest.raises(DataError, match="graph 0: an edge ends outside the nodes 0 to 1"):
        GraphDataset.from_graphs([data(x=torch.zeros(2, 1), edge_index=edges)], [0])


def test_class_of_pyg_graphs_is_y():
    data = pytest.importorskip("torch_geometric.data").Data
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = [data(x=torch.eye(2), edge_index=edges, y=torch.tensor([y])) for y in (1, 0)]
    read = GraphDataset.from_graphs(graphs)
    assert read.labels.tolist() == [1, 0] and read.info.node_names == ("x0", "x1")


def test_tensors_that_numpy_cannot_hold():
    graph = dgl.graph(([0, 1], [1, 0]))
    graph.ndata["x"], graph.edata["w"] = torch.tensor([1.5, -2.0]).bfloat16(), torch.ones(2).half()
    read = GraphDataset.from_graphs([graph, graph], torch.tensor([0.0, 1.0]).bfloat16())
    assert read.node_feats.flatten().tolist() == [1.5, -2.0] * 2 and read.labels.tolist() == [0, 1]
    data = pytest.importorskip("torch_geometric.data").Data
    edges, x = torch.tensor([[0, 1], [1, 0]]), torch.eye(2)
    wrong = {
        "node column 'x': a sparse_coo tensor of float32 cannot": data(x=x.to_sparse(), edge_index=edges),
        "edge column 'edge_index': a sparse_coo tensor of int64": data(x=x, edge_index=edges.to_sparse()),
        r"edge_index has the shape \[3, 2\]; it must have two rows": data(x=x, edge_index=edges[[0, 1, 1]]),
        r"edge_index has the shape \[2\]; it must have two rows": data(x=x, edge_index=edges[0]),
        "edge column 'edge_attr' has 0 rows for 2 edges": data(
            x=x, edge_index=edges, edge_attr=torch.tensor(1.0)
        ),
    }
    for message, graph in wrong.items():
        with pytest.raises(DataError, match=f"^graph 0: {message}"):
            GraphDataset.from_graphs([graph], [0])
    with pytest.raises(DataError, match="a sparse_coo tensor of int64 cannot be read"):
        GraphDataset.from_graphs([data(x=x, edge_index=edges)] * 2, torch.tensor([1, 0]).to_sparse())


def test_names_of_numpy_are_plain_in_messages():
    graph = nx.Graph([(np.str_("a"), np.int64(1), {"bond": 1}), (np.int64(1), "c")])
    with pytest.raises(DataError, match=r"^graph first: edge \((1, 'c'|'c', 1)\) has no 'bond'$"):
        GraphDataset.from_graphs([graph], ids=np.array(["first"]))
