"""A table of molecules, whole for training or in chunks for prediction."""

import textwrap
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from egin_dgl.data.arrays import GraphArrays, ReadChunk, SourceRows, concat_arrays
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.perturb import EdgeFeatures, Structure
from egin_dgl.data.prepare import GraphOptions, hash_files, prepare
from egin_dgl.data.readers.columns import object_array
from egin_dgl.data.readers.molecule_files import read_molecule_chunks
from egin_dgl.data.readers.molecules import graph_numbers, import_rdkit, read_several
from egin_dgl.data.readers.raw_targets import Target, read_targets
from egin_dgl.data.readers.tables import Table
from egin_dgl.errors import DataError
from egin_dgl.options import Name, Seed, TaskOption, validate_options
from egin_dgl.parallel import map_chunks
from egin_dgl.terminal import progress_bar

CHUNK_SIZE = 1000  # molecules that a process reads at once


def load_smiles(
    path: str,
    smiles: str = "smiles",
    target: Target = "label",
    id: str | None = None,
    split_column: str | None = None,
    features: Literal["tu", "rich"] = "tu",
    on_invalid: Literal["raise", "skip"] = "raise",
    self_loops: Literal["remove", "keep"] = "remove",
    node_features: Literal["degree", "constant"] = "degree",
    edge_features: EdgeFeatures = "keep",
    structure: Structure = "keep",
    shuffle_seed: Seed = 0,
    task: TaskOption = "auto",
    name: Name | None = None,
    cache: bool = True,
) -> GraphDataset:
    """Load molecules from a table with a header, delimited by , ; or tab, or from an SDF file. Needs RDKit.

    Args:
        path: The table, or a file that ends in .sdf; possibly gzipped.
        smiles: Column of the SMILES strings.
        target: Column of the target, or a list of columns; an empty cell is a missing target. The columns of an SDF file are its
            SD properties.
        id: Column of the names; default: the column ``id`` if there is one, else line numbers.
        split_column: Column with train, validation or test, or with fold numbers.
        features: "tu" (atom symbol, bond type) or "rich" (also charge, hydrogens, chirality, rings, …).
        on_invalid: Molecules that RDKit cannot parse: "raise" an error or "skip" them with a warning.
        self_loops, node_features, edge_features, structure, shuffle_seed: See `GraphOptions`.
        task: What the targets stand for; see `GraphOptions`.
        name: Name of the dataset; default: that of the file.
        cache: Use the cache of prepared datasets.
    """
    options = GraphOptions(
        "as_given", self_loops, node_features, edge_features, structure, shuffle_seed, task
    )
    columns: dict[str, Any] = {
        "smiles": smiles,
        "target": target,
        "id": id,
        "split_column": split_column,
        "features": features,
        "on_invalid": on_invalid,
    }
    validate_options(load_smiles, columns, "dataset")
    file = Path(path).expanduser()
    _, rdkit, _ = import_rdkit()
    reading = {key: str(value) for key, value in columns.items()}
    source = {"molecules": hash_files(file), "rdkit": rdkit.rdkitVersion, "columns": reading}
    name = name or file.name.split(".")[0] or file.name
    tables = read_molecule_chunks(file, None, smiles, id or "id")
    return prepare(lambda: read_molecules(next(tables), **columns), name, options, source, str(file), cache)


def stream_smiles(path: Path, chunk_size: int, **columns: Any) -> Iterator[ReadChunk]:
    """Chunks of molecules for prediction; invalid ones are listed in `GraphArrays.skipped`."""
    for table in read_molecule_chunks(
        path, chunk_size, columns.get("smiles", "smiles"), columns.get("id") or "id"
    ):
        yield partial(read_table_of_molecules, table, **columns)


def read_table_of_molecules(table: Table, **columns: Any) -> GraphArrays:
    """Molecules for prediction; columns are found whatever the case of their names."""
    target = columns.get("target", "label")
    targets = [target] if isinstance(target, str) else target
    names = [columns.get("smiles", "smiles"), *targets, columns.get("id")]
    renamed = table.renamed(name for name in names if name)
    arrays = read_molecules(renamed, **columns, on_invalid="skip", need_labels=False)
    return replace(arrays, rows=arrays.rows and replace(arrays.rows, columns=table.columns))


def read_molecules(
    table: Table,
    smiles: str = "smiles",
    target: Target = "label",
    id: str | None = None,
    split_column: str | None = None,
    features: str = "tu",
    on_invalid: str = "raise",
    need_labels: bool = True,
) -> GraphArrays:
    """The valid molecules of a table, see `load_smiles`; every DataError names the line."""

    def option(name: str) -> str | None:
        return f"dataset.{name}" if need_labels else None  # the columns of a prediction are those of its run

    texts = table.column(smiles, option("smiles"))
    targets, target_names = read_targets(table, target, need_labels)
    splits = None if split_column is None else table.filled_column(split_column, "dataset.split_column")
    if id is not None:
        ids = table.column(id, option("id"))
    else:
        ids = table.columns.get("id", object_array(map(str, table.lines.tolist())))
    parts, reasons, skipped = [], list[str](), list[str]()
    for arrays, found in read_in_chunks(texts, table.invalid, features):
        for row, reason in enumerate(found, start=len(reasons)):
            if reason and on_invalid == "raise":
                place = f"{table.locate(row)}: molecule {ids[row]!r}: {reason}"
                raise DataError(f"{place}; correct it, or skip it with dataset.on_invalid=skip")
            if reason:
                skipped.append(f"{table.locate(row)}: molecule {ids[row]!r}: {reason}")
        parts.append(arrays)
        reasons += found
    graph = graph_numbers(reasons)
    rows = np.flatnonzero(graph >= 0)
    notes: tuple[str, ...] = ()
    if need_labels:
        if not len(rows):
            raise DataError(f"{table.path} lists no molecule that can be read")
        examples = [
            f"line {table.lines[row]}: molecule {str(ids[row])[:40]!r}: {textwrap.shorten(reasons[row], 120)}"
            for row in np.flatnonzero(graph < 0)[:3]
        ]
        more = len(skipped) - len(examples)
        listed = "; ".join(examples) + (f" and {more:,} more, see summary.json" if more else "")
        notes = (f"{len(skipped)} molecule(s) skipped: {listed}",) if skipped else ()
    return replace(
        concat_arrays(parts),
        ids=tuple(map(str, ids[rows])),
        targets=None if targets is None else targets[rows],
        target_names=target_names,
        splits=() if splits is None else tuple(splits[rows]),
        warnings=notes,
        smiles=tuple(texts[rows]),
        skipped=tuple(skipped),
        lines=tuple(table.lines[rows].tolist()),
        rows=None if need_labels else SourceRows(graph, table.columns, tuple(reasons)),
    )


def read_in_chunks(
    texts: np.ndarray, invalid: Mapping[int, str], features: str
) -> Iterator[tuple[GraphArrays, list[str]]]:
    """`read_several` of chunks, in the processes that `map_chunks` may use."""
    starts = range(0, len(texts), CHUNK_SIZE)
    chunks = ((texts[i : i + CHUNK_SIZE].tolist(), _shifted(invalid, i)) for i in starts)
    done = 0
    with progress_bar("molecules", len(texts)) if len(starts) > 1 else nullcontext(int) as set_done:
        for arrays, reasons in map_chunks(_read_chunk, features, chunks):
            set_done(done := done + len(reasons))
            yield arrays, reasons


def _shifted(invalid: Mapping[int, str], start: int) -> dict[int, str]:
    return {row - start: reason for row, reason in invalid.items() if start <= row < start + CHUNK_SIZE}


def _read_chunk(features: str, chunk: tuple[list[str], dict[int, str]]) -> tuple[GraphArrays, list[str]]:
    return read_several(chunk[0], features, chunk[1])
