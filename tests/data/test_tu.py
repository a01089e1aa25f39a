"""The TU parser reads everything in the files; its errors name file and line."""

import os
from pathlib import Path

import numpy as np
import pytest

from egin_dgl.data import load_tu
from egin_dgl.data.arrays import GraphArrays, RawColumns, arrange_edges
from egin_dgl.data.readers.search_path import find_raw
from egin_dgl.data.readers.tu import read_tu
from egin_dgl.errors import DataError

ROOT = os.environ.get("EGIN_DATA_ROOT")

# two graphs: a path 1-2-3 and an edge 4-5
GOOD = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
}
FULL = GOOD | {
    "node_labels": "0, 7\n-3, 7\n5, 8\n0, 7\n0, 7\n",
    "node_attributes": "0.5\n1e-3\n-2\n.25\n3.\n",
    "edge_labels": "1\n1\n2\n2\n1\n1\n",
    "edge_attributes": "0.1, 1\n0.1, 1\n0.2, 1\n0.2, 1\n0.3, 1\n0.3, 1\n",
}


@pytest.fixture
def read(tmp_path):
    def write_and_read(files, **options) -> GraphArrays:
        directory = tmp_path / "T"
        directory.mkdir()
        for suffix, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            (directory / f"T_{suffix}.txt").write_bytes(data)
        return read_tu(find_raw("T", tmp_path, url=None), **options)

    return write_and_read


def same(one: GraphArrays, other: GraphArrays) -> bool:
    columns = [(getattr(one, side), getattr(other, side)) for side in ("nodes", "edges")]
    pairs = [(vars(a)[key], vars(b)[key]) for a, b in [(one, other), *columns] for key in vars(a)]
    return all(np.array_equal(a, b) for a, b in pairs if not isinstance(a, RawColumns))


def test_all_tables_are_read(read):
    arrays = read(FULL)
    assert arrays.graphs == 2
    assert arrays.node_graph.tolist() == [0, 0, 0, 1, 1]
    assert list(zip(arrays.src.tolist(), arrays.dst.tolist(), strict=True)) == [
        (0, 1),
        (1, 0),
        (1, 2),
        (2, 1),
        (3, 4),
        (4, 3),
    ]
    assert arrays.targets[:, 0].tolist() == [1, -1]
    assert arrays.nodes.labels.tolist() == [[0, 7], [-3, 7], [5, 8], [0, 7], [0, 7]]
    assert arrays.nodes.attributes.tolist() == [[0.5], [0.001], [-2], [0.25], [3]]
    assert arrays.edges.labels.shape == (6, 1) and arrays.edges.attributes.shape == (6, 2)
    assert arrays.warnings == ()


def test_absent_tables_are_none(read):
    arrays = read(GOOD)
    assert arrays.nodes.widths == arrays.edges.widths == (0, 0)


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text + "\n  \n\r\n\n",
        lambda text: text.rstrip("\n"),
        lambda text: text.replace(", ", " ,   ").replace("\n", "  \n"),
        lambda text: text.replace(", ", ","),
        lambda text: text.replace(", ", " "),
        lambda text: text.replace(", ", "\t"),
        lambda text: "\ufeff" + text,
    ],
    ids=[
        "crlf",
        "cr",
        "trailing blanks",
        "no final newline",
        "spaces",
        "tight",
        "no commas",
        "tabs",
        "byte order mark",
    ],
)
def test_dialects_are_equal(read, tmp_path, rewrite):
    plain = read(FULL)
    (tmp_path / "T").rename(tmp_path / "plain")
    assert same(read({suffix: rewrite(text) for suffix, text in FULL.items()}), plain)


def test_trailing_isolated_nodes_count(read):
    arrays = read(GOOD | {"graph_indicator": "1\n1\n1\n2\n2\n2\n2\n"})
    assert arrays.node_graph.tolist() == [0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("indicator", "labels", "kept", "first"),
    [
        ("1\n1\n1\n3\n3\n", "1\n5\n-1\n", [1, -1], 2),
        ("2\n2\n2\n4\n4\n", "9\n1\n5\n-1\n", [1, -1], 1),
        ("1\n1\n1\n2\n2\n", "1\n-1\n5\n", [1, -1], 3),
    ],
)
def test_graphs_without_nodes_are_dropped_with_a_warning(read, indicator, labels, kept, first):
    arrays = read(GOOD | {"graph_indicator": indicator, "graph_labels": labels})
    assert arrays.graphs == 2 and arrays.targets[:, 0].tolist() == kept
    assert set(arrays.node_graph.tolist()) == {0, 1}
    assert f"without a node dropped, the first is {first}" in arrays.warnings[0]
    assert arrays.ids == tuple(dict.fromkeys(indicator.split()))  # the numbers in the file


def test_labels_are_optional_for_prediction(read):
    arrays = read({key: GOOD[key] for key in ("A", "graph_indicator")}, need_labels=False)
    assert arrays.targets is None and arrays.graphs == 2


def test_graph_attributes_are_the_targets_of_a_regression(read):
    arrays = read(GOOD | {"graph_attributes": "0.5, 3\nnan, -1e-3\n"}, task="regression")
    assert arrays.targets.tolist() == [[0.5, 3.0], [None, -1e-3]] and arrays.task == "regression"
    assert arrays.target_names == ("attribute0", "attribute1")


def test_graph_labels_come_before_attributes_unless_there_are_none(read, tmp_path):
    both = GOOD | {"graph_attributes": "0.5\n1.5\n"}
    arrays = read(both)
    assert arrays.targets.tolist() == [[1], [-1]] and arrays.task == "multiclass"
    (tmp_path / "T" / "T_graph_labels.txt").unlink()
    data = load_tu("T", tmp_path, url=None, cache=False)
    assert data.info.task == "regression" and data.labels.tolist() == [[0.5], [1.5]]


BAD = {
    "no edges file": ({"A": None}, "T_A.txt is missing"),
    "no indicator": ({"graph_indicator": None}, "T_graph_indicator.txt is missing"),
    "no labels": ({"graph_labels": None}, "T_graph_labels.txt is missing"),
    "too few attributes": (
        {"graph_labels": None, "graph_attributes": "0.5\n"},
        "T_graph_indicator.txt, line 4: graph id 2, but the file of graph attributes has only 1 rows",
    ),
    "infinite attribute": (
        {"graph_labels": None, "graph_attributes": "0.5\ninf\n"},
        "T_graph_attributes.txt, line 2: inf where a finite number is needed",
    ),
    "empty edges": ({"A": ""}, "T_A.txt is empty"),
    "empty optional": ({"node_labels": " \n\n"}, "T_node_labels.txt is empty"),
    "word": ({"A": "1, 2\n2, x\n"}, "T_A.txt, line 2: 'x' is not a number"),
    "python number": ({"graph_labels": "1\n1_0\n"}, "T_graph_labels.txt, line 2: '1_0' is not a number"),
    "empty field": ({"A": "1, 2\n2, \n"}, "T_A.txt, line 2: '' is not a number"),
    "comment after": ({"graph_labels": "1\n-1#x\n"}, "T_graph_labels.txt, line 2: '-1#x' is not a number"),
    "comment": ({"graph_labels": "1\n#two\n"}, "T_graph_labels.txt, line 2: '#two' is not a number"),
    "ragged": (
        {"node_labels": "1, 2\n1, 2\n1\n1, 2\n1, 2\n"},
        "T_node_labels.txt, line 3: 1 column(s) where line 1 has 2",
    ),
    "blank inside": ({"graph_labels": "1\n\n-1\n"}, "T_graph_labels.txt, line 2: blank line between rows"),
    "three columns": ({"A": "1, 2, 3\n"}, "T_A.txt, line 1: 3 column(s) where 2 are needed"),
    "few node labels": (
        {"node_labels": "1\n2\n"},
        "T_node_labels.txt has 2 rows where ./T_graph_indicator.txt has 5",
    ),
    "few node attributes": ({"node_attributes": "1\n"}, "T_node_attributes.txt has 1 rows where"),
    "many edge labels": ({"edge_labels": "1\n" * 7}, "T_edge_labels.txt has 7 rows where ./T_A.txt has 6"),
    "many edge attributes": (
        {"edge_attributes": "1\n" * 7},
        "T_edge_attributes.txt has 7 rows where ./T_A.txt has 6",
    ),
    "few graph labels": (
        {"graph_labels": "1\n"},
        "T_graph_indicator.txt, line 4: graph id 2, but the file of graph labels has only 1",
    ),
    "node 0": ({"A": "1, 2\n0, 1\n"}, "T_A.txt, line 2: edge 0, 1 is outside the nodes 1 to 5"),
    "node above": ({"A": "1, 2\n2, 1\n6, 5\n"}, "T_A.txt, line 3: edge 6, 5 is outside the nodes 1 to 5"),
    "across": ({"A": "1, 2\n2, 1\n3, 4\n"}, "T_A.txt, line 3: edge 3, 4 joins graphs 1 and 2"),
    "graph 0": (
        {"graph_indicator": "0\n0\n0\n1\n1\n"},
        "T_graph_indicator.txt, line 1: graph id 0 is below 1",
    ),
    "descending": (
        {"graph_indicator": "1\n1\n2\n1\n2\n"},
        "T_graph_indicator.txt, line 4: graph id 1 after 2",
    ),
    "nan": (
        {"node_attributes": "1\n2\nnan\n4\n5\n"},
        "T_node_attributes.txt, line 3: nan where a finite number is needed",
    ),
    "inf": (
        {"edge_attributes": "1\n2\n3\n4\n5\n-inf\n"},
        "T_edge_attributes.txt, line 6: -inf where a finite number is needed",
    ),
    "too big": (
        {"node_attributes": "1\n2\n3\n1e39\n5\n"},
        "T_node_attributes.txt, line 4: 1e+39 where a finite number is needed",
    ),
    "fraction": (
        {"node_labels": "1\n2.5\n1\n1\n1\n"},
        "T_node_labels.txt, line 2: 2.5 where an integer below 2^53 is needed",
    ),
    "label that a float64 does not hold": (
        {"graph_labels": "1\n9007199254740993\n"},
        "T_graph_labels.txt, line 2: 9007199254740992.0 where an integer below 2^53 is needed",
    ),
    "nan label": (
        {"graph_labels": "1\nnan\n"},
        "T_graph_labels.txt, line 2: nan where an integer below 2^53 is needed",
    ),
    "huge label": (
        {"graph_labels": "1\n1e300\n"},
        "T_graph_labels.txt, line 2: 1e+300 where an integer below 2^53 is needed",
    ),
    "not text": ({"graph_labels": b"1\n\xff\xfe\n"}, "T_graph_labels.txt, line 2: byte 0xff is not text"),
    "zero byte": ({"graph_labels": b"1\n\x00\n"}, "T_graph_labels.txt, line 2: '\\x00' is not a number"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD.keys())
def test_errors_name_file_and_line(read, tmp_path, change, message):
    files = {suffix: text for suffix, text in (GOOD | change).items() if text is not None}
    with pytest.raises(DataError) as caught:
        read(files)
    assert message in str(caught.value).replace(f"{tmp_path}/T/", "./")
    assert str(tmp_path / "T" / "T_") in str(caught.value) and "\n" not in str(caught.value)


# --- edges ---------------------------------------------------------------------------------------------------------


def make_arrays(edges, nodes=4, graphs=None):
    src, dst = np.array(edges).T
    node_graph = np.array(graphs or [0] * nodes)
    labels = np.arange(len(edges))[:, None]
    return GraphArrays(
        node_graph,
        src,
        dst,
        int(node_graph.max()) + 1,
        edges=RawColumns(labels=labels, attributes=labels / 2),
    )


def triples(arrays):
    assert np.array_equal(arrays.edges.attributes, arrays.edges.labels / 2)
    return list(
        zip(arrays.src.tolist(), arrays.dst.tolist(), arrays.edges.labels[:, 0].tolist(), strict=True)
    )


def test_only_missing_reverse_edges_are_added():
    arrays = arrange_edges(make_arrays([(0, 1), (1, 0), (1, 2), (3, 2), (3, 2)]))
    assert triples(arrays) == [
        (0, 1, 0),
        (1, 0, 1),
        (1, 2, 2),
        (3, 2, 3),
        (3, 2, 4),
        (2, 1, 2),
        (2, 3, 3),
        (2, 3, 4),
    ]
    assert arrays.warnings == (
        "reverse edge added to 3 one-way edge(s); 2 edge(s) are listed in both directions",
    )
    assert triples(arrange_edges(arrays)) == triples(arrays)


def test_edges_as_given():
    edges = [(0, 1), (1, 2), (1, 2)]
    assert triples(arrange_edges(make_arrays(edges), symmetric=False)) == [
        (0, 1, 0),
        (1, 2, 1),
        (1, 2, 2),
    ]


def test_self_loops_are_removed_by_default():
    edges = [(0, 0), (0, 1), (1, 0), (2, 2)]
    removed = arrange_edges(make_arrays(edges))
    assert triples(removed) == [(0, 1, 1), (1, 0, 2)] and removed.warnings == ("2 self-loop(s) removed",)
    kept = arrange_edges(make_arrays(edges), self_loops=True)
    assert triples(kept) == [(0, 0, 0), (0, 1, 1), (1, 0, 2), (2, 2, 3)] and kept.warnings == ()


def test_edges_are_grouped_by_graph_in_stable_order():
    arrays = arrange_edges(make_arrays([(2, 3), (0, 1), (3, 2), (1, 0)], graphs=[0, 0, 1, 1]))
    assert triples(arrays) == [(0, 1, 1), (1, 0, 3), (2, 3, 0), (3, 2, 2)]


@pytest.mark.skipif(not (ROOT and Path(ROOT, "COX2_MD").is_dir()), reason="EGIN_DATA_ROOT has no COX2_MD")
def test_every_edge_of_a_large_set_is_read():
    assert len(read_tu(find_raw("COX2_MD", url=None)).src) == 203_084
