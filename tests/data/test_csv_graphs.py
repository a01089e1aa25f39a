"""Graphs from three tables, with errors that name file and line."""

import gzip

import numpy as np
import pandas as pd
import pytest
import torch

from egin_dgl.data import load_tu
from egin_dgl.data.dataset import TENSORS
from egin_dgl.data.readers.csv_graphs import load_csv, read_csv_graphs
from egin_dgl.data.readers.search_path import find_raw
from egin_dgl.data.readers.tu import read_tu
from egin_dgl.errors import ConfigError, DataError

# Graph a is the path x - y - z, graph b the edge 1 - 2; nodes of the two graphs are listed in turn.
GOOD = {
    "graphs": "id,label,fold\na,toxic,train\nb,harmless,test\n",
    "nodes": "graph,node,atom,charge,number\na,x,C,0.5,1\nb,1,N,0,2\na,y,O,-1,1\nb,2,C,1e-3,1\na,z,C,0,3\n",
    "edges": "graph,source,target,bond\na,x,y,single\nb,1,2,double\na,y,z,double\n",
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def directory(tmp_path):
    def write(**changes):
        place = tmp_path / "own"
        place.mkdir(exist_ok=True)
        for name, text in (GOOD | changes).items():
            (place / f"{name}.csv").unlink(missing_ok=True)
            if text is not None:
                data = text if isinstance(text, bytes) else text.encode()
                (place / f"{name}.csv").write_bytes(data)
        return place

    return write


def test_all_columns_are_read(directory):
    data = load_csv(directory())
    assert data.ids == ("a", "b") and data.info.name == "own"
    assert data.info.class_names == ("harmless", "toxic") and data.labels.tolist() == [1, 0]
    names = ("charge", "atom=C", "atom=N", "atom=O", "number=1", "number=2", "number=3")
    assert data.info.node_names == names and data.info.edge_names == ("bond=double", "bond=single")
    x, y, z, one, two = data.node_feats.tolist()
    assert x == [0.5, 1, 0, 0, 1, 0, 0] and y == [-1, 0, 0, 1, 1, 0, 0] and z == [0, 1, 0, 0, 0, 0, 1]
    assert one == [0, 0, 1, 0, 0, 1, 0] and two[0] == np.float32(1e-3)
    edges = zip(data.src.tolist(), data.dst.tolist(), data.edge_feats[:, 0].tolist(), strict=True)
    assert sorted(edges) == [(0, 1, 0), (1, 0, 0), (1, 2, 1), (2, 1, 1), (3, 4, 1), (4, 3, 1)]
    assert not data.notes


def test_cached_dataset_is_equal(directory, tmp_path):
    first, again = (load_csv(directory(), split_column="fold") for _ in range(2))
    assert len(list((tmp_path / "cache" / "processed").iterdir())) == 1
    assert all(torch.equal(getattr(first, key), getattr(again, key)) for key in TENSORS)
    for key in ("ids", "splits", "info", "vocabulary", "digest"):
        assert getattr(first, key) == getattr(again, key)
    assert first.splits == ("train", "test")
    other = load_csv(directory(edges=GOOD["edges"].replace("single", "triple")), split_column="fold")
    assert other.digest != first.digest and "bond=triple" in other.info.edge_names


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace(",", ";"),
        lambda text: text.replace(",", "\t"),
        lambda text: "\ufeff" + text.rstrip("\n"),
        lambda text: text.replace("\n", "\n\n") + "\n  \n",
        lambda text: text.replace(",", " , "),
        lambda text: "".join(
            f",{line}\n" if i == 0 else f"{i},{line}\n" for i, line in enumerate(text.split())
        ),
        lambda text: gzip.compress(text.encode()),
        lambda text: "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in text.split()),
    ],
    ids=["crlf", "semicolons", "tabs", "mark", "blank lines", "spaces", "pandas' index", "gzip", "quotes"],
)
def test_dialects_are_equal(directory, rewrite):
    plain = load_csv(directory(), cache=False)
    other = load_csv(directory(**{name: rewrite(text) for name, text in GOOD.items()}), cache=False)
    assert other.info == plain.info and other.ids == plain.ids
    assert all(torch.equal(getattr(plain, key), getattr(other, key)) for key in TENSORS)


def test_selected_columns(directory):
    selected = {"node_labels": ["charge"], "node_attributes": ["number"], "edge_attributes": []}
    data = load_csv(directory(), **selected, cache=False)
    assert data.info.node_names == ("number", "charge=-1", "charge=0", "charge=0.5", "charge=1e-3")
    assert data.info.edge_names == ("constant",)
    with pytest.raises(ConfigError, match="node_labels must be a list of column names"):
        load_csv(directory(), node_labels=[3])


def test_large_integers_and_leading_zeros_are_exact(directory):
    big = str(2**53 + 1)
    nodes = "graph,node,number,code\na,x,{0},007\na,y,1,7\na,z,1,7\nb,1,1,7\nb,2,1,7\n"
    data = load_csv(directory(nodes=nodes.format(big)), cache=False)
    assert f"number={big}" in data.info.node_names and {"code=007", "code=7"} <= set(data.info.node_names)
    with pytest.raises(
        DataError, match=f"nodes.csv, line 2: column 'number' holds {big}, an integer too large"
    ):
        load_csv(directory(nodes=nodes.format(big)), node_attributes=["number"])
    with pytest.raises(
        DataError, match="line 2: column 'number' holds 9007199254740993, an integer too large"
    ):
        load_csv(directory(nodes=nodes.format(big).replace("y,1", "y,0.5")))


def test_integral_classes(directory):
    data = load_csv(directory(graphs="id,label\na,10\nb,9.0\n"), cache=False)
    assert data.info.class_names == ("9", "10") and data.labels.tolist() == [1, 0]


def test_labels_are_optional_for_prediction(directory):
    for graphs in ("id\na\nb\n", "id,label\na,\nb,NaN\n"):
        arrays = read_csv_graphs(directory(graphs=graphs), need_labels=False)
        assert arrays.targets is None or arrays.targets.tolist() == [[None], [None]]


def test_tables_without_edges(directory):
    data = load_csv(directory(edges="graph,source,target\n"), cache=False)
    assert len(data.src) == 0 and data.info.edge_names == ("constant",)


def test_mutag_as_tables_equals_mutag(tmp_path):
    raw = read_tu(find_raw("MUTAG", url=None))
    ids = np.array(raw.ids)
    rng = np.random.default_rng(0)
    pd.DataFrame({"id": ids, "label": raw.targets[:, 0]}).to_csv(tmp_path / "graphs.csv", index=False)
    nodes = {
        "graph": ids[raw.node_graph],
        "node": np.arange(len(raw.node_graph)),
        "atom": raw.nodes.labels[:, 0],
    }
    pd.DataFrame(nodes).to_csv(tmp_path / "nodes.csv")
    ends = {"source": raw.src, "target": raw.dst, "bond": raw.edges.labels[:, 0]}
    edges = pd.DataFrame({"graph": ids[raw.node_graph[raw.src]], **ends})
    once = edges[edges["source"] < edges["target"]]
    once.iloc[rng.permutation(len(once))].to_csv(tmp_path / "edges.csv.gz", index=False)
    again, mutag = load_csv(tmp_path, cache=False), load_tu("MUTAG", cache=False)
    assert again.ids == mutag.ids and again.info.class_names == mutag.info.class_names
    for key in set(TENSORS) - {"src", "dst", "edge_feats"}:
        assert torch.equal(getattr(again, key), getattr(mutag, key)), key

    def listed(data):
        return sorted(
            map(tuple, torch.cat([data.src[:, None], data.dst[:, None], data.edge_feats], 1).tolist())
        )

    assert listed(again) == listed(mutag)


BAD = {
    "no graphs file": ({"graphs": None}, "own has no graphs.csv; it must hold"),
    "no edges file": ({"edges": None}, "own has no edges.csv"),
    "empty": ({"nodes": ""}, "nodes.csv is empty; its first line must name its columns"),
    "no graphs": ({"graphs": "id,label\n"}, "graphs.csv lists no graphs"),
    "no id": ({"graphs": "name,label\na,1\n"}, "graphs.csv has no column 'id', only 'name', 'label'"),
    "no label": (
        {"graphs": "id,y\na,1\nb,0\n"},
        "graphs.csv has no column 'label', only 'id', 'y'; set dataset.target",
    ),
    "id twice": ({"graphs": "id,label\na,1\nb,2\na,1\n"}, "graphs.csv, line 4: graph 'a' is listed twice"),
    "column twice": ({"nodes": "graph,node,graph\n"}, "nodes.csv, line 1: two columns are called 'graph'"),
    "unknown graph": (
        {"nodes": GOOD["nodes"] + "c,1,C,0,1\n"},
        "nodes.csv, line 7: graph 'c' is not in graphs.csv",
    ),
    "graph of an edge": (
        {"edges": GOOD["edges"] + "c,1,2,x\n"},
        "edges.csv, line 5: graph 'c' is not in graphs",
    ),
    "node twice": (
        {"nodes": GOOD["nodes"] + "a,x,C,0,1\n"},
        "nodes.csv, line 7: node 'x' is listed twice in this graph",
    ),
    "no source": (
        {"edges": "graph,source,target\na,q,x\n"},
        "edges.csv, line 2: source 'q' is not a node of graph 'a'",
    ),
    "other's node": (
        {"edges": "graph,source,target\na,x,y\na,x,1\n"},
        "edges.csv, line 3: target '1' is not a node of",
    ),
    "without nodes": (
        {"graphs": GOOD["graphs"] + "c,toxic,\n"},
        "graphs.csv, line 4: graph 'c' has no node in nodes",
    ),
    "long row": (
        {"nodes": GOOD["nodes"] + "a,u,C,0,1,9\n"},
        "nodes.csv, line 7: 6 fields where the header has 5",
    ),
    "short row": ({"nodes": GOOD["nodes"] + "a,u,C,0\n"}, "nodes.csv, line 7: no value in column 'number'"),
    "open quote": (
        {"edges": GOOD["edges"] + 'a,"x,y,z\n'},
        "edges.csv, line 5: a quotation mark is never closed",
    ),
    "empty cell": (
        {"nodes": GOOD["nodes"].replace("y,O", "y,")},
        "nodes.csv, line 4: no value in column 'atom'",
    ),
    "line breaks": (
        {"nodes": GOOD["nodes"].replace("x,C", 'x,"C\n\nC"').replace("y,O", "y,")},
        "nodes.csv, line 6: no value in column 'atom'",
    ),
    "nan": (
        {"nodes": GOOD["nodes"].replace("0.5", "nan")},
        "nodes.csv, line 2: column 'charge' holds nan, which",
    ),
    "inf": (
        {"nodes": GOOD["nodes"].replace("-1,1", "-inf,1")},
        "nodes.csv, line 4: column 'charge' holds -inf",
    ),
    "too big": (
        {"nodes": GOOD["nodes"].replace("0.5", "1e39")},
        "nodes.csv, line 2: column 'charge' holds 1e+39",
    ),
    "commas": (
        {"nodes": "graph;node;w\na;x;0,5\na;y;1\na;z;1\nb;1;1\nb;2;1\n"},
        "write real numbers with a decimal point",
    ),
    "no class": (
        {"graphs": "id,label\na,\nb,\n"},
        "own: no graph has a value of 'label'",
    ),
    "two kinds": (
        {"graphs": "id,label\na,yes\nb,0.37\n"},
        "own: line 2: the target 'label' holds 'yes' among numbers: correct it",
    ),
    "one class": ({"graphs": "id,label\na,1\nb,1\n"}, "own has a single class (1)"),
    "not text": (
        {"nodes": GOOD["nodes"].encode() + b"a,\xff,C,0,1\n"},
        "nodes.csv, line 7: byte 0xff is not text",
    ),
    "half a zip": (
        {"nodes": gzip.compress(GOOD["nodes"].encode())[:-9]},
        "nodes.csv is not a complete gzip file",
    ),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD.keys())
def test_errors_name_file_and_line(directory, change, message):
    place = directory(**change)
    with pytest.raises(DataError) as caught:
        load_csv(place)
    assert message in str(caught.value) and "\n" not in str(caught.value) and str(place) in str(caught.value)


def test_errors_of_options(directory, tmp_path):
    place = directory()
    with pytest.raises(
        DataError, match="nodes.csv has no column 'mass', only 'graph'.*dataset.node_labels or"
    ):
        load_csv(place, node_labels=["mass"])
    with pytest.raises(DataError, match="line 2: column 'atom' holds 'C', expected a number"):
        load_csv(place, node_attributes=["atom"])
    with pytest.raises(DataError, match="the targets hold 'label' text, 'fold' .*: task=multilabel"):
        load_csv(place, target=["label", "fold"])
    with pytest.raises(DataError, match="nowhere is not a directory"):
        load_csv(tmp_path / "nowhere")
    with pytest.raises(DataError, match="graphs.csv has no column 'split'.*dataset.split_column"):
        load_csv(place, split_column="split")
    many = "id,label\n" + "".join(f"g{i},{i}\n" for i in range(30))
    nodes = "graph,node,atom\n" + "".join(f"g{i},0,C\n" for i in range(30))
    tables = directory(graphs=many, nodes=nodes, edges="graph,source,target,order\ng0,0,0,1\n")
    with pytest.raises(
        DataError, match="'label' holds 30 different integers: task=multiclass .* task=regression"
    ):
        load_csv(tables)
    with pytest.raises(DataError, match="'label' has 30 different values in 30 graphs, too many for classes"):
        load_csv(tables, task="multiclass")
    assert load_csv(tables, task="regression").labels[:, 0].tolist() == list(range(30))


@pytest.mark.parametrize(
    ("added", "edges", "notes"),
    [
        ("", "symmetric", []),
        ("a,x,y,single\n", "symmetric", ["1 edge(s) listed again are kept as parallel edges, 0 of them"]),
        ("a,x,y,single\na,x,y,double\n", "as_given", ["2 edge(s) listed again", "1 of them with other"]),
        ("a,y,x,single\n", "symmetric", ["one-way edge(s); 2 edge(s) are listed in both directions"]),
        ("a,y,x,double\n", "symmetric", ["2 edge(s) have other features than their reverse; each direction"]),
        ("a,y,x,double\n", "as_given", []),
    ],
)
def test_repeated_edges_are_noted(directory, added, edges, notes):
    data = load_csv(directory(edges=GOOD["edges"] + added), edges=edges)
    assert all(note in " ".join(data.notes) for note in notes) and bool(data.notes) == bool(notes)


def test_both_features_of_an_edge_that_is_listed_twice_remain(directory):
    data = load_csv(directory(edges=GOOD["edges"] + "a,x,y,double\n"), edges="as_given")
    between = (data.src == 0) & (data.dst == 1)
    assert data.edge_feats[between].tolist() == [[0, 1], [1, 0]]  # single, double


@pytest.mark.parametrize("name", ["../../outside", "..", "a/b", "a\\b"])
def test_a_name_is_not_a_path(directory, tmp_path, name):
    with pytest.raises(ConfigError, match="name must be a name without a path"):
        load_csv(directory(), name=name)
    assert {path.name for path in tmp_path.iterdir()} <= {"own", "cache"}
