"""Graphs in three tables: graphs.csv (id, label), nodes.csv (graph, node, …), edges.csv (graph, source, target, …)."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from egin_dgl.data.arrays import GraphArrays, RawColumns
from egin_dgl.data.dataset import GraphDataset, GraphOptions
from egin_dgl.data.prepare import content_hash, prepare
from egin_dgl.data.readers.columns import ColumnSelection, objects, stacked
from egin_dgl.data.readers.tables import Table, parse_texts, read_table
from egin_dgl.data.targets import OneColumn, check_classes, class_column
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import DataError

TABLES = ("graphs", "nodes", "edges")


def load_csv(
    path: str,
    target: OneColumn = "label",
    split_column: str | None = None,
    node_labels: Sequence[str] | None = None,
    node_attributes: Sequence[str] | None = None,
    edge_labels: Sequence[str] | None = None,
    edge_attributes: Sequence[str] | None = None,
    edges: Literal["symmetric", "as_given"] = "symmetric",
    self_loops: Literal["remove", "keep"] = "remove",
    node_features: Literal["degree", "constant"] = "degree",
    use_edge_features: bool = True,
    name: str | None = None,
    cache: bool = True,
    vocabulary: Vocabulary | None = None,
    class_names: Sequence[str] | None = None,
) -> GraphDataset:
    """Load a folder of three tables, from the processed cache where the same files were prepared with the same options."""
    options = GraphOptions(edges, self_loops, node_features, use_edge_features)
    chosen = (
        ColumnSelection.of(node_labels, node_attributes, "node"),
        ColumnSelection.of(edge_labels, edge_attributes, "edge"),
    )
    folder = Path(path).expanduser()
    files = [table_path(folder, table) for table in TABLES]
    reading = {
        "target": str(target),
        "split_column": split_column,
        "columns": [(c.labels, c.attributes) for c in chosen],
    }
    return prepare(
        partial(read_csv_graphs, folder, target, split_column, *chosen, need_labels=class_names is None),
        name or folder.resolve().name,
        options,
        source={"csv": content_hash(files), **reading},
        origin=str(folder),
        labels_in=str(files[0]),
        cache=cache,
        vocabulary=vocabulary,
        class_names=class_names,
    )


def table_path(folder: Path, table: str) -> Path:
    """graphs.csv, or graphs.csv.gz."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; it must hold graphs.csv, nodes.csv and edges.csv")
    for file in (folder / f"{table}.csv", folder / f"{table}.csv.gz"):
        if file.exists():
            return file
    raise DataError(
        f"{folder / f'{table}.csv'} is missing; a folder of graphs has graphs.csv, nodes.csv and edges.csv"
    )


def read_csv_graphs(
    folder: Path,
    target: str = "label",
    split_column: str | None = None,
    node_choice: ColumnSelection | None = None,
    edge_choice: ColumnSelection | None = None,
    need_labels: bool = True,
) -> GraphArrays:
    """Read and check the three tables; every fault is a DataError with file and line. Rows may come in any order."""
    graphs, nodes, edges = (read_table(table_path(folder, table)) for table in TABLES)
    ids = _filled(graphs, "id")
    if not len(ids):
        raise DataError(f"{graphs.path} lists no graphs")
    index = pd.Index(ids)
    graphs.refuse(index.duplicated(), lambda row: f"graph {ids[row]!r} is listed before")
    classes = class_column(graphs, target, need_labels)
    if need_labels and classes is not None:
        check_classes(classes, graphs.lines.tolist(), str(graphs.path), target)

    node_graph = _graph_of(nodes, index, graphs)
    order = np.argsort(node_graph, kind="stable")
    empty = np.bincount(node_graph, minlength=len(ids)) == 0
    graphs.refuse(empty, lambda row: f"graph {ids[row]!r} has no node in {nodes.path.name}")
    names = [_filled(nodes, "node"), _filled(edges, "source"), _filled(edges, "target")]
    codes, known = pd.factorize(np.concatenate(names))
    # A node is its graph and its name.
    key = node_graph * len(known) + codes[: len(nodes)]
    nodes.refuse(pd.Index(key).duplicated(), lambda row: f"node {names[0][row]!r} is in this graph before")
    place = pd.Index(key[order])
    edge_graph = _graph_of(edges, index, graphs)
    ends = []
    for number, (texts, start) in enumerate(
        zip(names[1:], (len(nodes), len(nodes) + len(edges)), strict=True)
    ):
        end = place.get_indexer(pd.Index(edge_graph * len(known) + codes[start : start + len(edges)]))
        _refuse_end(edges, end, texts, number, ids[edge_graph], nodes)
        ends.append(end.astype(np.int64))

    of_nodes = _columns(nodes, node_choice or ColumnSelection(), ("graph", "node"), "node")
    of_edges = _columns(edges, edge_choice or ColumnSelection(), ("graph", "source", "target"), "edge")
    return GraphArrays(
        node_graph=node_graph[order],
        src=ends[0],
        dst=ends[1],
        graphs=len(ids),
        graph_labels=None if classes is None else objects(classes),
        node_labels=None if of_nodes.labels is None else of_nodes.labels[order],
        node_attributes=None if of_nodes.attributes is None else of_nodes.attributes[order],
        edge_labels=of_edges.labels,
        edge_attributes=of_edges.attributes,
        ids=tuple(ids),
        node_label_names=of_nodes.label_names,
        node_attribute_names=of_nodes.attribute_names,
        edge_label_names=of_edges.label_names,
        edge_attribute_names=of_edges.attribute_names,
        parts=()
        if split_column is None or not need_labels
        else tuple(_filled(graphs, split_column, "dataset.split_column")),
    )


def _filled(table: Table, name: str, option: str = "") -> np.ndarray:
    texts = table.column(name, option)
    table.refuse(texts == "", lambda row: f"no value in column {name!r}")
    return texts


def _graph_of(table: Table, index: pd.Index, graphs: Table) -> np.ndarray:
    texts = _filled(table, "graph")
    number = index.get_indexer(pd.Index(texts, dtype=object)).astype(np.int64)
    table.refuse(number < 0, lambda row: f"graph {texts[row]!r} is not in {graphs.path.name}")
    return number


def _refuse_end(
    edges: Table, end: np.ndarray, texts: np.ndarray, number: int, graph: np.ndarray, nodes: Table
) -> None:
    word = ("source", "target")[number]
    edges.refuse(
        end < 0,
        lambda row: f"{word} {texts[row]!r} is no node of graph {graph[row]!r} in {nodes.path.name}",
    )


def _columns(table: Table, choice: ColumnSelection, keys: Sequence[str], what: str) -> RawColumns:
    names = [name for name in table.columns if name not in keys] if choice.names is None else choice.names
    found: dict[str, dict[str, np.ndarray]] = {"label": {}, "attribute": {}}
    for name in names if len(table) else ():
        texts = table.column(name, f"dataset.{what}_labels or dataset.{what}_attributes")
        kind, column = parse_texts(texts, choice.kind(name), table.where, f"column {name!r}")
        found[kind][name] = column
    labels, attributes = found["label"], found["attribute"]
    return RawColumns(
        len(table), stacked(labels.values()), stacked(attributes.values()), tuple(labels), tuple(attributes)
    )
