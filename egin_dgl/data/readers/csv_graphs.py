"""Graphs in three tables: graphs.csv (id, label), nodes.csv (graph, node, …), edges.csv (graph, source, target, …)."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from egin_dgl.data.arrays import GraphArrays, RawColumns, SourceRows
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.perturb import EdgeFeatures, Structure
from egin_dgl.data.prepare import GraphOptions, hash_files, prepare
from egin_dgl.data.readers.columns import ColumnSelection, Selections, select_columns, stack_columns
from egin_dgl.data.readers.raw_targets import Target, read_targets
from egin_dgl.data.readers.tables import Table, parse_strings, read_table
from egin_dgl.errors import DataError
from egin_dgl.options import Name, Seed, TaskOption

KEYS = {"graphs": ["id"], "nodes": ["graph", "node"], "edges": ["graph", "source", "target"]}


def load_csv(
    path: str,
    target: Target = "label",
    split_column: str | None = None,
    node_labels: Sequence[str] | None = None,
    node_attributes: Sequence[str] | None = None,
    edge_labels: Sequence[str] | None = None,
    edge_attributes: Sequence[str] | None = None,
    edges: Literal["symmetric", "as_given"] = "symmetric",
    self_loops: Literal["remove", "keep"] = "remove",
    node_features: Literal["degree", "constant"] = "degree",
    edge_features: EdgeFeatures = "keep",
    structure: Structure = "keep",
    shuffle_seed: Seed = 0,
    task: TaskOption = "auto",
    name: Name | None = None,
    cache: bool = True,
) -> GraphDataset:
    """Load graphs from a directory with graphs.csv, nodes.csv and edges.csv, each possibly gzipped.

    Args:
        path: The directory.
        target: Column of graphs.csv with the target, or a list of columns; an empty cell is a missing target.
        split_column: Column of graphs.csv with train, validation or test, or with fold numbers.
        node_labels, node_attributes, edge_labels, edge_attributes: Columns to use, as in `GraphDataset.from_graphs`.
        edges, self_loops, node_features, edge_features, structure, shuffle_seed: See `GraphOptions`.
        task: What the targets stand for; see `GraphOptions`.
        name: Name of the dataset; default: that of the directory.
        cache: Use the cache of prepared datasets.
    """
    options = GraphOptions(edges, self_loops, node_features, edge_features, structure, shuffle_seed, task)
    columns = select_columns(node_labels, node_attributes, edge_labels, edge_attributes)
    directory = Path(path).expanduser()
    source = {
        "csv": hash_files(*(_table_path(directory, table) for table in KEYS)),
        "target": str(target),
        "split_column": split_column,
        "columns": [(c.labels, c.attributes) for c in columns],
    }
    read = partial(read_csv_graphs, directory, target, split_column, columns, symmetric=edges == "symmetric")
    return prepare(read, name or directory.resolve().name, options, source, str(directory), cache)


def has_tables(directory: Path) -> bool:
    return any((directory / f"{table}.csv{end}").exists() for table in KEYS for end in ("", ".gz"))


def _table_path(directory: Path, table: str) -> Path:
    for file in (directory / f"{table}.csv", directory / f"{table}.csv.gz"):
        if file.exists():
            return file
    problem = f"has no {table}.csv" if directory.is_dir() else "is not a directory"
    raise DataError(f"{directory} {problem}; it must hold graphs.csv, nodes.csv and edges.csv")


def read_csv_graphs(
    directory: Path,
    target: Target = "label",
    split_column: str | None = None,
    columns: Selections | None = None,
    need_labels: bool = True,
    symmetric: bool = True,
) -> GraphArrays:
    """Read and validate the three tables; every DataError names file and line. Rows may come in any order.

    Edges that are listed twice are noted; if `symmetric`, also those that have other features than their reverse.
    """
    graphs, nodes, edges = (read_table(_table_path(directory, table)) for table in KEYS)
    columns = columns or select_columns()
    ids = graphs.filled_column("id")
    if not len(ids):
        raise DataError(f"{graphs.path} lists no graphs")
    index = pd.Index(ids)
    graphs.raise_if(index.duplicated(), "graph {!r} is listed twice", ids)
    targets, target_names = read_targets(graphs, target, need_labels)
    splits: tuple[str, ...] = ()
    if need_labels and split_column is not None:
        splits = tuple(graphs.filled_column(split_column, "dataset.split_column"))

    node_graph, edge_graph = (_graph_numbers(table, index) for table in (nodes, edges))
    empty = np.bincount(node_graph, minlength=len(ids)) == 0
    graphs.raise_if(empty, "graph {!r} has no node in nodes.csv", ids)
    names, *ends = nodes.filled_column("node"), edges.filled_column("source"), edges.filled_column("target")
    codes, known = pd.factorize(np.concatenate([names, *ends]))
    # A node is identified by its graph and its name.
    key = node_graph * len(known) + codes[: len(nodes)]
    nodes.raise_if(pd.Index(key).duplicated(), "node {!r} is listed twice in this graph", names)
    order = np.argsort(node_graph, kind="stable")
    index = pd.Index(key[order])
    src, dst = (
        index.get_indexer(pd.Index(edge_graph * len(known) + own)).astype(np.int64)
        for own in np.split(codes[len(nodes) :], 2)
    )
    for column, texts, end in (("source", ends[0], src), ("target", ends[1], dst)):
        edges.raise_if(end < 0, f"{column} {{!r}} is not a node of graph {{!r}}", texts, ids[edge_graph])
    edge_columns = _parse_columns(edges, columns[1], KEYS["edges"], need_labels)
    return GraphArrays(
        node_graph=node_graph[order],
        src=src,
        dst=dst,
        graphs=len(ids),
        targets=targets,
        target_names=target_names,
        nodes=_parse_columns(nodes, columns[0], KEYS["nodes"], need_labels).take(order, len(nodes)),
        edges=edge_columns,
        warnings=_repeated_edges(edges.path, src, dst, edge_columns, symmetric),
        ids=tuple(ids),
        splits=splits,
        lines=tuple(graphs.lines.tolist()),
        rows=None if need_labels else SourceRows(np.arange(len(ids)), graphs.columns),
    )


def _repeated_edges(
    path: Path, src: np.ndarray, dst: np.ndarray, columns: RawColumns, symmetric: bool
) -> tuple[str, ...]:
    """Notes on edges that are listed twice, and on pairs of opposite edges with different features."""
    features = pd.DataFrame(columns.by_name(), index=range(len(src)))
    kind = np.zeros_like(src)
    if features.size:
        kind = features.groupby(list(features), sort=False).ngroup().to_numpy()
    src, dst, kind = (x[src != dst] for x in (src, dst, kind))
    nodes, kinds = max(src.max(initial=0), dst.max(initial=0)) + 1, kind.max(initial=0) + 1
    pairs, reverse = np.split(pd.factorize(np.concatenate([src * nodes + dst, dst * nodes + src]))[0], 2)
    notes = []
    if twice := int(pd.Index(pairs).duplicated().sum()):
        other = twice - int(pd.Index(pairs * kinds + kind).duplicated().sum())
        notes.append(
            f"{path}: {twice} edge(s) listed again are kept as parallel edges, {other} of them with other features"
        )
    same = np.isin(reverse * kinds + kind, pairs * kinds + kind)
    if symmetric and (other := int((np.isin(reverse, pairs) & ~same).sum())):
        notes.append(
            f"{path}: {other} edge(s) have other features than their reverse; each direction keeps its own"
        )
    return tuple(notes)


def _graph_numbers(table: Table, index: pd.Index) -> np.ndarray:
    texts = table.filled_column("graph")
    number = index.get_indexer(pd.Index(texts, dtype=object)).astype(np.int64)
    table.raise_if(number < 0, "graph {!r} is not in graphs.csv", texts)
    return number


def _parse_columns(
    table: Table, selection: ColumnSelection, keys: Sequence[str], selectable: bool
) -> RawColumns:
    names = (
        [name for name in table.columns if name not in keys] if selection.names is None else selection.names
    )
    options = f"dataset.{selection.owner}_labels or dataset.{selection.owner}_attributes"
    parsed = {}
    for name in names if len(table) else ():
        texts = table.column(name, options if selectable else None)
        parsed[name] = parse_strings(texts, selection.kind(name), table.locate, f"column {name!r}")
    return stack_columns(len(table), parsed)
