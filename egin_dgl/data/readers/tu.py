"""Datasets in the TU Dortmund format.

A dataset is a set of text tables: one row per directed edge in _A (two node numbers, from 1), one per node in
_graph_indicator (its graph's number, from 1), one per graph in _graph_labels (its class) or _graph_attributes (its values of
a regression), and optional tables of labels and attributes of nodes and edges with any number of columns.
"""

import io
import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
from typing_extensions import TypedDict

from egin_dgl.data.arrays import GraphArrays, RawColumns
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.perturb import EdgeFeatures, Structure
from egin_dgl.data.prepare import GraphOptions, prepare
from egin_dgl.data.readers.columns import MAX_EXACT, MAX_FLOAT, NUMBER
from egin_dgl.data.readers.raw_files import RawFiles
from egin_dgl.data.readers.search_path import DEFAULT_URL, find_raw
from egin_dgl.errors import DataError
from egin_dgl.options import Count, Directory, ListOf, Name, Seed, TaskOption, Url, validate_options

WIDTHS = {"A": 2, "graph_indicator": 1, "graph_labels": 1}  # columns; the other tables have any number


class Expected(TypedDict, total=False):
    """Sizes that a config requires, each a number, a list of accepted numbers, or None for any."""

    graphs: Count | ListOf[Count] | None
    classes: Count | ListOf[Count] | None
    node_dim: Count | ListOf[Count] | None
    edge_dim: Count | ListOf[Count] | None


def load_tu(
    name: Name,
    root: Directory | os.PathLike | None = None,
    url: Url | None = DEFAULT_URL,
    edges: Literal["symmetric", "as_given"] = "symmetric",
    self_loops: Literal["remove", "keep"] = "remove",
    node_features: Literal["degree", "constant"] = "degree",
    edge_features: EdgeFeatures = "keep",
    structure: Structure = "keep",
    shuffle_seed: Seed = 0,
    task: TaskOption = "auto",
    expect: Expected | None = None,
    cache: bool = True,
) -> GraphDataset:
    """Load a TU dataset, from local files or from the TU site.

    Args:
        name: Name of the dataset, such as "MUTAG".
        root: Directory with NAME/, NAME/raw/ or NAME.zip; default: EGIN_DATA_ROOT. See `find_raw` for the search path.
        url: Where NAME.zip is downloaded from if it is not found; None forbids it.
        edges, self_loops, node_features, edge_features, structure, shuffle_seed: See `GraphOptions`.
        task: What the targets stand for; see `GraphOptions`. The targets are those of _graph_labels, or those of
            _graph_attributes if task is "regression" or there are no labels.
        expect: Required sizes (graphs, classes, node_dim, edge_dim), to detect other files of the same name.
        cache: Use the cache of prepared datasets.
    """
    options = GraphOptions(edges, self_loops, node_features, edge_features, structure, shuffle_seed, task)
    validate_options(load_tu, {"expect": expect})
    raw = find_raw(name, root, url)
    try:
        source = {"raw": raw.digest()}
        dataset = prepare(partial(read_tu, raw, task), name, options, source, raw.origin, cache)
        _check_sizes(dataset, expect or {}, options)
    except DataError as error:
        if raw.cache_file is None:
            raise
        raise DataError(f"{error}; remove {raw.cache_file} to download it again") from error
    return dataset


def _check_sizes(dataset: GraphDataset, expect: Mapping[str, Any], options: GraphOptions) -> None:
    # Without edges all degrees are 0, and a constant feature is a single column.
    changed = {"node_dim": options.structure == "none", "edge_dim": options.edge_features == "constant"}
    for key, value in expect.items():
        if value is None or changed.get(key):
            continue
        accepted = [value] if isinstance(value, int) else list(value)
        if (found := getattr(dataset.info, key)) not in accepted:
            raise DataError(
                f"{dataset.info.name}: expected {key} {' or '.join(map(str, accepted))}, found {found} in "
                f"{dataset.origin}; these are other files than the config was written for"
            )


def read_tu(raw: RawFiles, task: TaskOption = "auto", need_labels: bool = True) -> GraphArrays:
    """Parse and validate a dataset; every DataError names file and line.

    `need_labels=False` is for prediction: the file of targets may be missing.
    """
    graph_ids, ends = _read_table(raw, "graph_indicator")[:, 0], _read_table(raw, "A")
    suffix = target_suffix(raw, task)
    targets = _read_targets(raw, suffix) if need_labels or suffix in raw.contents else None
    nodes, indicator, edges = len(graph_ids), raw.path("graph_indicator"), raw.path("A")
    _raise_if(graph_ids < 1, indicator, "graph id {} is below 1", graph_ids)
    before = np.concatenate([graph_ids[:1], graph_ids[:-1]])
    _raise_if(graph_ids < before, indicator, "graph id {} after {}, ids must not decrease", graph_ids, before)
    if targets is not None:
        rows = f"but the file of {suffix.replace('_', ' ')} has only {len(targets)} rows"
        _raise_if(graph_ids > len(targets), indicator, f"graph id {{}}, {rows}", graph_ids)
    outside = np.any((ends < 1) | (ends > nodes), axis=1)
    _raise_if(outside, edges, f"edge {{}}, {{}} is outside the nodes 1 to {nodes}", *ends.T)
    src, dst = np.ascontiguousarray(ends.T) - 1
    # Graphs without nodes are dropped; the others keep their numbers as ids.
    present, node_graph = np.unique(graph_ids, return_inverse=True)
    owners = graph_ids[src], graph_ids[dst]
    _raise_if(owners[0] != owners[1], edges, "edge {}, {} joins graphs {} and {}", *ends.T, *owners)
    arrays = GraphArrays(
        node_graph=node_graph,
        src=src,
        dst=dst,
        graphs=len(present),
        targets=None if targets is None else targets[present - 1],
        target_names=_target_names(0 if targets is None else targets.shape[1], suffix),
        task="multiclass" if suffix == "graph_labels" else "regression",  # by definition of the format
        nodes=_columns(raw, "node", nodes, "graph_indicator"),
        edges=_columns(raw, "edge", len(src), "A"),
        ids=tuple(map(str, present.tolist())),
    )
    total = present[-1] if targets is None else len(targets)
    if total > len(present):
        first = np.setdiff1d(np.arange(1, len(present) + 2), present)[0]
        arrays = arrays.with_warning(
            f"{indicator}: {total - len(present)} of {total} graphs without a node dropped, the first is {first}"
        )
    return arrays


def target_suffix(raw: RawFiles, task: TaskOption) -> str:
    """The table of the targets: attributes are for regression, or for datasets without labels."""
    attributes = "graph_attributes" in raw.contents and (
        task == "regression" or "graph_labels" not in raw.contents
    )
    return "graph_attributes" if attributes else "graph_labels"


def _target_names(columns: int, suffix: str) -> tuple[str, ...]:
    return tuple(f"attribute{i}" for i in range(columns)) if suffix == "graph_attributes" else ("label",)


def _read_targets(raw: RawFiles, suffix: str) -> np.ndarray:
    """(rows, T) integers or real numbers as objects, None where an attribute is NaN."""
    table = _read_table(raw, suffix)
    targets = table.astype(object)
    targets[np.isnan(table)] = None
    return targets


def _columns(raw: RawFiles, owner: str, rows: int, rows_of: str) -> RawColumns:
    """Optional labels and attributes of nodes or edges."""
    tables: dict[str, Any] = {}
    for kind in ("labels", "attributes"):
        suffix = f"{owner}_{kind}"
        if suffix in raw.contents:
            tables[kind] = _read_table(raw, suffix)
            if (found := len(tables[kind])) != rows:
                raise DataError(f"{raw.path(suffix)} has {found} rows where {raw.path(rows_of)} has {rows}")
    return RawColumns(rows, **tables)


def _read_table(raw: RawFiles, suffix: str) -> np.ndarray:
    """A table of attributes as float64, any other as int64."""
    path, data = raw.path(suffix), raw.contents.get(suffix)
    if data is None:
        needed = "_A, _graph_indicator and _graph_labels or _graph_attributes"
        raise DataError(f"{path} is missing; a dataset needs {needed}")
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
    if table.shape[1] != WIDTHS.get(suffix, table.shape[1]):
        raise DataError(f"{path}, line 1: {table.shape[1]} column(s) where {WIDTHS[suffix]} are needed")
    is_integer = not suffix.endswith("attributes")
    if is_integer:
        # 2^53 itself is invalid, as 2^53 + 1 is parsed as it.
        wrong, needed = ~(np.abs(table) < MAX_EXACT) | (table != np.floor(table)), "an integer below 2^53"
    else:
        missing = np.isnan(table) & (suffix == "graph_attributes")
        wrong, needed = ~(np.abs(table) <= MAX_FLOAT) & ~missing, "a finite number"
    for column, in_column in zip(table.T, wrong.T, strict=True):
        _raise_if(in_column, path, f"{{}} where {needed} is needed", column)
    return table.astype(np.int64) if is_integer else table


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


def _raise_if(wrong: np.ndarray, path: str, problem: str, *columns: np.ndarray) -> None:
    """Raise for the first wrong row, with its values; row and line numbers agree, as tables have no blank lines."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"{path}, line {row + 1}: {problem.format(*(column[row] for column in columns))}")
