"""Datasets in the TU Dortmund format.

A dataset is a set of text tables: one row per directed edge in _A (two node numbers, from 1), one per node in
_graph_indicator (its graph's number, from 1), one per graph in _graph_labels, and optional tables of labels and
attributes of nodes and edges with any number of columns.
"""

import io
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypedDict

import numpy as np

from egin_dgl.data.arrays import GraphArrays, RawColumns
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.encode import GraphOptions
from egin_dgl.data.prepare import prepare
from egin_dgl.data.readers.columns import MAX_FLOAT, NUMBER
from egin_dgl.data.readers.download import DEFAULT_URL
from egin_dgl.data.readers.raw_files import RawFiles
from egin_dgl.data.readers.search_path import find_raw
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.ranges import Address, Count, Folder

_EXACT = 2.0**53  # a float64, as which all numbers are parsed, represents every integer below


class Expected(TypedDict, total=False):
    """Sizes that a config requires, each a number, a list of accepted numbers, or None for any."""

    graphs: Count | Sequence[Count] | None
    classes: Count | Sequence[Count] | None
    node_dim: Count | Sequence[Count] | None
    edge_dim: Count | Sequence[Count] | None


def load_tu(
    name: str,
    root: Folder | os.PathLike | None = None,
    url: Address | None = DEFAULT_URL,
    edges: Literal["symmetric", "as_given"] = "symmetric",
    self_loops: Literal["remove", "keep"] = "remove",
    node_features: Literal["degree", "constant"] = "degree",
    use_edge_features: bool = True,
    expect: Expected | None = None,
    cache: bool = True,
) -> GraphDataset:
    """Load a TU dataset, from local files or from the TU site.

    Args:
        name: Name of the dataset, such as "MUTAG".
        root: Directory with NAME/, NAME/raw/ or NAME.zip; default: EGIN_DATA_ROOT. See `find_raw` for the search path.
        url: Where NAME.zip is downloaded from if it is not found; None forbids it.
        edges, self_loops, node_features, use_edge_features: See `GraphOptions`.
        expect: Required sizes (graphs, classes, node_dim, edge_dim), to detect other files of the same name.
        cache: Use the cache of prepared datasets.
    """
    options = GraphOptions(edges, self_loops, node_features, use_edge_features)
    if wrong := set(expect or {}) - set(Expected.__annotations__):
        raise ConfigError(
            f"expect has the keys graphs, classes, node_dim and edge_dim, not {', '.join(sorted(wrong))}"
        )
    raw = find_raw(name, root, url)
    try:
        dataset = prepare(
            partial(read_tu, raw),
            name,
            options,
            source={"raw": raw.digest()},
            origin=raw.origin,
            labels_in=raw.path("graph_labels"),
            cache=cache,
        )
        _check_sizes(dataset, expect or {}, use_edge_features)
    except DataError as error:
        if raw.cache_file is None:
            raise
        raise DataError(f"{error}; remove {raw.cache_file} to download it again") from error
    return dataset


def _check_sizes(dataset: GraphDataset, expect: Mapping[str, Any], use_edge_features: bool) -> None:
    for key, value in expect.items():
        if value is None or (key == "edge_dim" and not use_edge_features):
            continue
        accepted = [value] if isinstance(value, int) else list(value)
        if (found := getattr(dataset.info, key)) not in accepted:
            raise DataError(
                f"{dataset.info.name}: expected {key} {' or '.join(map(str, accepted))}, found {found} in "
                f"{dataset.origin}; these are other files than the config was written for"
            )


def read_tu(raw: RawFiles, need_labels: bool = True) -> GraphArrays:
    """Parse and validate a dataset; every DataError names file and line.

    `need_labels=False` is for prediction: the _graph_labels file may be missing.
    """
    graph_ids = _integers(raw, "graph_indicator", width=1)[:, 0]
    ends = _integers(raw, "A", width=2)
    labels = None
    if need_labels or "graph_labels" in raw.contents:
        labels = _integers(raw, "graph_labels", width=1)[:, 0]
    nodes, indicator = len(graph_ids), raw.path("graph_indicator")

    _raise_if(graph_ids < 1, indicator, lambda row: f"graph id {graph_ids[row]} is below 1")
    _raise_if(
        np.diff(graph_ids, prepend=graph_ids[:1]) < 0,
        indicator,
        lambda row: f"graph id {graph_ids[row]} after {graph_ids[row - 1]}, ids must not decrease",
    )
    if labels is not None:
        rows = f"but {raw.path('graph_labels')} has only {len(labels)} rows"
        _raise_if(graph_ids > len(labels), indicator, lambda row: f"graph id {graph_ids[row]}, {rows}")
    _raise_if(
        np.any((ends < 1) | (ends > nodes), axis=1),
        raw.path("A"),
        lambda row: (
            f"edge {ends[row, 0]}, {ends[row, 1]} is outside the nodes 1 to {nodes} that {indicator} lists"
        ),
    )
    src, dst = np.ascontiguousarray(ends.T) - 1
    present, node_graph = np.unique(graph_ids, return_inverse=True)
    _raise_if(
        node_graph[src] != node_graph[dst],
        raw.path("A"),
        lambda row: (
            f"edge {ends[row, 0]}, {ends[row, 1]} joins graphs {graph_ids[src[row]]} and {graph_ids[dst[row]]}"
        ),
    )
    arrays = GraphArrays(
        node_graph=node_graph,
        src=src,
        dst=dst,
        graphs=len(present),
        graph_labels=labels if labels is None else labels[present - 1],
        nodes=_columns(raw, "node", nodes, "graph_indicator"),
        edges=_columns(raw, "edge", len(src), "A"),
        ids=tuple(
            map(str, present.tolist())
        ),  # the ids of the file, also where graphs without nodes are dropped
    )
    total = present[-1] if labels is None else len(labels)
    if total > len(present):
        first = np.setdiff1d(np.arange(1, len(present) + 2), present)[0]
        arrays = arrays.with_warning(
            f"{indicator}: {total - len(present)} graph(s) without a node dropped, the first is {first}"
        )
    return arrays


def _columns(raw: RawFiles, owner: str, rows: int, rows_of: str) -> RawColumns:
    """Optional labels and attributes of nodes or edges."""
    tables = []
    for suffix, read in ((f"{owner}_labels", _integers), (f"{owner}_attributes", _reals)):
        table = read(raw, suffix) if suffix in raw.contents else None
        if table is not None and len(table) != rows:
            raise DataError(f"{raw.path(suffix)} has {len(table)} rows where {raw.path(rows_of)} has {rows}")
        tables.append(table)
    return RawColumns(rows, labels=tables[0], attributes=tables[1])


def _integers(raw: RawFiles, suffix: str, width: int | None = None) -> np.ndarray:
    table, path = _parse_table(raw, suffix), raw.path(suffix)
    if width is not None and table.shape[1] != width:
        raise DataError(f"{path}, line 1: {table.shape[1]} column(s) where {width} are needed")
    # 2^53 itself is invalid, as 2^53 + 1 is parsed as it.
    wrong = ~(np.abs(table) < _EXACT) | (table != np.floor(table))
    _raise_if(
        wrong.any(axis=1),
        path,
        lambda row: f"{table[row][wrong[row]][0]} where an integer below 2^53 is needed",
    )
    return table.astype(np.int64)


def _reals(raw: RawFiles, suffix: str) -> np.ndarray:
    table = _parse_table(raw, suffix)
    wrong = ~(np.abs(table) <= MAX_FLOAT)
    _raise_if(
        wrong.any(axis=1),
        raw.path(suffix),
        lambda row: f"attribute {table[row][wrong[row]][0]} is not finite",
    )
    return table


def _parse_table(raw: RawFiles, suffix: str) -> np.ndarray:
    path, data = raw.path(suffix), raw.contents.get(suffix)
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
        raise _locate_fault(path, text, delimiter) from error
    # loadtxt skips blank lines, after which row and line numbers would differ.
    if len(table) != text.count("\n") + 1:
        raise _locate_fault(path, text, delimiter)
    return table


def _locate_fault(path: str, text: str, delimiter: str | None) -> DataError:
    """The line on which `np.loadtxt` failed, and why."""
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


def _raise_if(wrong: np.ndarray, path: str, describe: Callable[[int], str]) -> None:
    """Raise for the first wrong row; row and line numbers agree, as tables have no blank lines."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"{path}, line {row + 1}: {describe(row)}")
