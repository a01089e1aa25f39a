"""TU text → arrays: the only parser.

A TU dataset is a handful of text tables whose rows line up: one row per directed edge in _A (two node numbers, from
1), one per node in _graph_indicator (its graph's number, from 1), one per graph in _graph_labels, and optional
labels and attributes of nodes and edges with any number of columns.
"""

import io
from collections.abc import Callable

import numpy as np

from egin_dgl.data.arrays import GraphArrays
from egin_dgl.data.readers.columns import NUMBER
from egin_dgl.data.readers.raw_files import RawFiles
from egin_dgl.errors import DataError

_EXACT = 2.0**53  # below it a float64, which everything is parsed as, holds every integer


def read_tu(raw: RawFiles, need_labels: bool = True) -> GraphArrays:
    """Parse and check one dataset; every fault is a DataError with file and line.

    `need_labels=False` is for prediction on new graphs, whose _graph_labels file need not exist.
    """
    graph_ids = _integers(raw, "graph_indicator", columns=1)[:, 0]
    edges = _integers(raw, "A", columns=2)
    labels = None
    if need_labels or raw.read("graph_labels") is not None:
        labels = _integers(raw, "graph_labels", columns=1)[:, 0]
    nodes, where = len(graph_ids), raw.path("graph_indicator")

    _refuse(graph_ids < 1, where, lambda row: f"graph id {graph_ids[row]} is below 1")
    falls = np.concatenate([[False], np.diff(graph_ids) < 0])
    _refuse(
        falls,
        where,
        lambda row: f"graph id {graph_ids[row]} after {graph_ids[row - 1]}, ids must not descend",
    )
    if labels is not None:
        absent = f"but {raw.path('graph_labels')} has only {len(labels)} rows"
        _refuse(graph_ids > len(labels), where, lambda row: f"graph id {graph_ids[row]}, {absent}")
    _refuse(
        np.any((edges < 1) | (edges > nodes), axis=1),
        raw.path("A"),
        lambda row: f"edge {edges[row, 0]}, {edges[row, 1]} leaves the nodes 1 to {nodes} that {where} lists",
    )
    src, dst = np.ascontiguousarray(edges.T) - 1
    kept, node_graph = np.unique(graph_ids, return_inverse=True)
    _refuse(
        node_graph[src] != node_graph[dst],
        raw.path("A"),
        lambda row: (
            f"edge {edges[row, 0]}, {edges[row, 1]} joins graphs {graph_ids[src[row]]} and {graph_ids[dst[row]]}"
        ),
    )

    arrays = GraphArrays(
        node_graph=node_graph,
        src=src,
        dst=dst,
        graphs=len(kept),
        graph_labels=labels if labels is None else labels[kept - 1],
        node_labels=_aligned(
            raw, _optional_integers(raw, "node_labels"), "node_labels", nodes, "graph_indicator"
        ),
        node_attributes=_aligned(
            raw, _reals(raw, "node_attributes"), "node_attributes", nodes, "graph_indicator"
        ),
        edge_labels=_aligned(raw, _optional_integers(raw, "edge_labels"), "edge_labels", len(src), "A"),
        edge_attributes=_aligned(raw, _reals(raw, "edge_attributes"), "edge_attributes", len(src), "A"),
        ids=tuple(
            map(str, kept.tolist())
        ),  # of the file, so that they hold where graphs without nodes are dropped
    )
    ids = kept[-1] if labels is None else len(labels)
    if ids > len(kept):
        before = np.concatenate([[0], kept])
        first = before[np.argmax(np.diff(before, append=ids + 1) > 1)] + 1
        arrays = arrays.noting(
            f"{where}: {ids - len(kept)} graph(s) without a node dropped, the first is {first}"
        )
    return arrays


def _table(raw: RawFiles, suffix: str) -> np.ndarray:
    path, data = raw.path(suffix), raw.read(suffix)
    if data is None:
        raise DataError(f"{path} is missing; a dataset needs _A, _graph_indicator and _graph_labels")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: byte {data[error.start]:#04x} is not text") from error
    text = text.replace("\r\n", "\n").replace("\r", "\n").rstrip()
    if not text:
        raise DataError(f"{path} is empty")
    delimiter = "," if "," in text else None
    try:
        table = np.loadtxt(io.StringIO(text), delimiter=delimiter, comments=None, ndmin=2)
    except ValueError as error:
        raise _fault(path, text, delimiter) from error
    # loadtxt skips blank lines, after which row and line would disagree
    if len(table) != text.count("\n") + 1:
        raise _fault(path, text, delimiter)
    return table


def _fault(path: str, text: str, delimiter: str | None) -> DataError:
    """Find the line that the fast parser stumbled over."""
    width = None
    for number, line in enumerate(text.split("\n"), start=1):
        fields = [field.strip() for field in line.split(delimiter)]
        if not line.strip():
            return DataError(f"{path}, line {number}: blank line between rows")
        for field in fields:
            if not NUMBER.fullmatch(field):
                return DataError(f"{path}, line {number}: {field[:40]!r} is not a number")
        width = width or len(fields)
        if len(fields) != width:
            return DataError(f"{path}, line {number}: {len(fields)} column(s) where line 1 has {width}")
    return DataError(f"{path} is not a table of numbers")


def _refuse(bad: np.ndarray, path: str, describe: Callable[[int], str]) -> None:
    """Raise for the first bad row, told by its line: rows and lines agree, as no line inside a table is blank."""
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"{path}, line {row + 1}: {describe(row)}")


def _integers(raw: RawFiles, suffix: str, columns: int | None = None) -> np.ndarray:
    table, path = _table(raw, suffix), raw.path(suffix)
    if columns is not None and table.shape[1] != columns:
        raise DataError(f"{path}, line 1: {table.shape[1]} column(s) where {columns} are needed")
    # 2^53 itself is refused, as 2^53 + 1 is read as it.
    wrong = ~(np.abs(table) < _EXACT) | (table != np.floor(table))
    _refuse(
        wrong.any(axis=1),
        path,
        lambda row: f"{table[row][wrong[row]][0]} where an integer is needed, of less than 2^53",
    )
    return table.astype(np.int64)


def _optional_integers(raw: RawFiles, suffix: str) -> np.ndarray | None:
    return None if raw.read(suffix) is None else _integers(raw, suffix)


def _reals(raw: RawFiles, suffix: str) -> np.ndarray | None:
    if raw.read(suffix) is None:
        return None
    table = _table(raw, suffix)
    # features are float32: what overflows there is infinite
    wrong = ~(np.abs(table) <= np.finfo(np.float32).max)
    _refuse(
        wrong.any(axis=1),
        raw.path(suffix),
        lambda row: f"attribute {table[row][wrong[row]][0]} is not finite",
    )
    return table


def _aligned(raw: RawFiles, table: np.ndarray | None, suffix: str, rows: int, of: str) -> np.ndarray | None:
    if table is not None and len(table) != rows:
        raise DataError(f"{raw.path(suffix)} has {len(table)} rows where {raw.path(of)} has {rows}")
    return table
