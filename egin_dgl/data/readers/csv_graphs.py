"""Graphs in three tables: graphs.csv (id, label), nodes.csv (graph, node, …), edges.csv (graph, source, target, …)."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from egin_dgl.data.arrays import GraphArrays, RawColumns
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.encode import GraphOptions
from egin_dgl.data.prepare import hash_files, prepare
from egin_dgl.data.readers.columns import (
    ALL_COLUMNS,
    ColumnSelection,
    object_array,
    select_columns,
    stack_columns,
)
from egin_dgl.data.readers.tables import Table, parse_strings, read_table
from egin_dgl.data.targets import OneColumn, check_classes, read_classes
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
    edges: str = "symmetric",
    self_loops: str = "remove",
    node_features: str = "degree",
    use_edge_features: bool = True,
    name: str | None = None,
    cache: bool = True,
) -> GraphDataset:
    """Load graphs from a directory with graphs.csv, nodes.csv and edges.csv, each possibly gzipped.

    Args:
        path: The directory.
        target: Column of graphs.csv with the class.
        split_column: Column of graphs.csv with train, validation or test, or with fold numbers.
        node_labels, node_attributes, edge_labels, edge_attributes: Columns to use, as in `GraphDataset.from_graphs`.
        edges, self_loops, node_features, use_edge_features: See `GraphOptions`.
        name: Name of the dataset; default: that of the directory.
        cache: Use the cache of prepared datasets.
    """
    options = GraphOptions(edges, self_loops, node_features, use_edge_features)
    columns = select_columns(node_labels, node_attributes, edge_labels, edge_attributes)
    directory = Path(path).expanduser()
    files = [_table_path(directory, table) for table in TABLES]
    return prepare(
        partial(read_csv_graphs, directory, target, split_column, columns),
        name or directory.resolve().name,
        options,
        source={
            "csv": hash_files(files),
            "target": str(target),
            "split_column": split_column,
            "columns": [(c.labels, c.attributes) for c in columns],
        },
        origin=str(directory),
        labels_in=str(files[0]),
        cache=cache,
    )


def has_tables(directory: Path) -> bool:
    return any((directory / f"{table}.csv{end}").exists() for table in TABLES for end in ("", ".gz"))


def _table_path(directory: Path, table: str) -> Path:
    if not directory.is_dir():
        raise DataError(f"{directory} is not a directory; it must hold graphs.csv, nodes.csv and edges.csv")
    for file in (directory / f"{table}.csv", directory / f"{table}.csv.gz"):
        if file.exists():
            return file
    raise DataError(
        f"{directory / f'{table}.csv'} is missing; the directory must hold graphs.csv, nodes.csv and edges.csv"
    )


def read_csv_graphs(
    directory: Path,
    target: str = "label",
    split_column: str | None = None,
    columns: tuple[ColumnSelection, ColumnSelection] = ALL_COLUMNS,
    need_labels: bool = True,
) -> GraphArrays:
    """Read and validate the three tables; every DataError names file and line. Rows may come in any order."""
    graphs, nodes, edges = (read_table(_table_path(directory, table)) for table in TABLES)
    ids = graphs.filled_column("id")
    if not len(ids):
        raise DataError(f"{graphs.path} lists no graphs")
    index = pd.Index(ids)
    graphs.raise_if(index.duplicated(), lambda row: f"graph {ids[row]!r} is listed twice")
    classes = read_classes(graphs, target, need_labels)
    if need_labels and classes is not None:
        check_classes(classes, graphs.lines.tolist(), str(graphs.path), target)

    node_graph, edge_graph = (_graph_numbers(table, index, graphs) for table in (nodes, edges))
    order = np.argsort(node_graph, kind="stable")
    empty = np.bincount(node_graph, minlength=len(ids)) == 0
    graphs.raise_if(empty, lambda row: f"graph {ids[row]!r} has no node in {nodes.path.name}")
    names = nodes.filled_column("node")
    ends = {column: edges.filled_column(column) for column in ("source", "target")}
    codes, known = pd.factorize(np.concatenate([names, *ends.values()]))
    # A node is identified by its graph and its name.
    key = node_graph * len(known) + codes[: len(nodes)]
    nodes.raise_if(
        pd.Index(key).duplicated(), lambda row: f"node {names[row]!r} is listed twice in this graph"
    )
    index, numbers = pd.Index(key[order]), {}
    for (column, texts), own in zip(ends.items(), np.split(codes[len(nodes) :], 2), strict=True):
        numbers[column] = index.get_indexer(pd.Index(edge_graph * len(known) + own)).astype(np.int64)
        _check_ends(edges, numbers[column], column, texts, ids[edge_graph], nodes.path.name)
    return GraphArrays(
        node_graph=node_graph[order],
        src=numbers["source"],
        dst=numbers["target"],
        graphs=len(ids),
        graph_labels=None if classes is None else object_array(classes),
        nodes=_parse_columns(nodes, columns[0], ("graph", "node"), "node").take(order, len(nodes)),
        edges=_parse_columns(edges, columns[1], ("graph", "source", "target"), "edge"),
        ids=tuple(ids),
        splits=()
        if split_column is None or not need_labels
        else tuple(graphs.filled_column(split_column, "dataset.split_column")),
    )


def _graph_numbers(table: Table, index: pd.Index, graphs: Table) -> np.ndarray:
    texts = table.filled_column("graph")
    number = index.get_indexer(pd.Index(texts, dtype=object)).astype(np.int64)
    table.raise_if(number < 0, lambda row: f"graph {texts[row]!r} is not in {graphs.path.name}")
    return number


def _check_ends(
    edges: Table, end: np.ndarray, column: str, texts: np.ndarray, graph: np.ndarray, nodes: str
) -> None:
    edges.raise_if(
        end < 0, lambda row: f"{column} {texts[row]!r} is not a node of graph {graph[row]!r} in {nodes}"
    )


def _parse_columns(table: Table, selection: ColumnSelection, keys: Sequence[str], owner: str) -> RawColumns:
    names = selection.names
    if names is None:
        names = [name for name in table.columns if name not in keys]
    parsed = {}
    for name in names if len(table) else ():
        texts = table.column(name, f"dataset.{owner}_labels or dataset.{owner}_attributes")
        parsed[name] = parse_strings(texts, selection.kind(name), table.locate, f"column {name!r}")
    return stack_columns(len(table), parsed)
