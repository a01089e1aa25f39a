"""Graphs to predict, given as a path, a SMILES string, a list or a data frame → raw graphs in chunks."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from egin_dgl.data.arrays import GraphArrays, ReadChunk
from egin_dgl.data.readers.columns import object_array
from egin_dgl.data.readers.detect import detect_loader, open_chunks
from egin_dgl.data.readers.graph_objects import graphs_to_arrays
from egin_dgl.data.readers.libraries import MOLECULES, kind_of
from egin_dgl.data.readers.molecule_files import count_molecules
from egin_dgl.data.readers.molecules import is_no_molecule, molecules_to_arrays, parse_smiles
from egin_dgl.data.readers.smiles import read_table_of_molecules
from egin_dgl.data.readers.tables import Table
from egin_dgl.errors import ConfigError, DataError


def open_inputs(graphs: object, dataset_settings: Mapping, chunk_size: int) -> Iterator[ReadChunk]:
    """Chunks of raw graphs, at most `chunk_size` at a time but for objects of graph libraries.

    Args:
        graphs: see `TrainedRun`.
        dataset_settings: the ``dataset`` settings of the run that predicts.
    """
    features = dataset_settings.get("features", "tu")
    if isinstance(graphs, os.PathLike) or (isinstance(graphs, str) and os.path.exists(graphs)):
        yield from open_chunks(Path(graphs), dataset_settings, chunk_size)
    elif isinstance(graphs, str):
        check_smiles(graphs)
        yield partial(molecules_to_arrays, [graphs], features)
    elif isinstance(graphs, pd.DataFrame):
        table = frame_to_table(graphs)
        columns = {
            name: dataset_settings[name] for name in ("smiles", "target", "id") if name in dataset_settings
        }
        for start in range(0, len(graphs), chunk_size):
            own = {str(name): graphs[name].to_numpy()[start : start + chunk_size] for name in graphs.columns}
            yield partial(read_rows, table.rows(start, start + chunk_size), own, features=features, **columns)
    elif isinstance(graphs, Iterable):
        several = list(graphs)
        if several and all(is_no_molecule(graph) or kind_of(graph) in MOLECULES for graph in several):
            for start in range(0, len(several), chunk_size):
                yield partial(molecules_to_arrays, several[start : start + chunk_size], features, start)
        else:
            yield partial(graphs_to_arrays, several, molecules=features)
    else:
        raise DataError(
            f"graphs must be a path, a SMILES string, a list or a data frame, got {type(graphs).__name__}"
        )


def read_rows(table: Table, own: dict[str, np.ndarray], **columns: Any) -> GraphArrays:
    """Molecules of a data frame, with its own columns instead of their texts."""
    arrays = read_table_of_molecules(table, **columns)
    return replace(arrays, rows=arrays.rows and replace(arrays.rows, columns=own))


def count_graphs(graphs: object) -> int | None:
    """An upper bound of the number of graphs for a progress bar; None where it is not known before they are read."""
    if isinstance(graphs, str) and os.path.isfile(graphs) and detect_loader(Path(graphs)) == "load_smiles":
        return count_molecules(Path(graphs))
    return None


def check_smiles(text: str) -> None:
    """Refuse a string that is neither an existing path nor a molecule; datasets are not found by name."""
    try:
        parse_smiles(text)
    except (DataError, ConfigError) as error:  # the latter without RDKit
        raise DataError(f"{text[:200]}: no such file or directory, and no SMILES string ({error})") from None


def frame_to_table(frame: pd.DataFrame) -> Table:
    """The rows of a data frame as text, blank where a value is missing."""
    if not frame.columns.is_unique:
        raise DataError("two columns of the data frame have the same name")
    texts = frame.astype(object).where(frame.notna(), "")
    columns = {str(name): object_array(str(value).strip() for value in texts[name]) for name in texts.columns}
    return Table(Path("data frame"), columns, np.arange(len(frame)))
