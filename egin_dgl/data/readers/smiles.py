"""A table of molecules written as SMILES, whole for training or in pieces for prediction."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from egin_dgl.data.arrays import GraphArrays, concatenated
from egin_dgl.data.dataset import GraphDataset, GraphOptions
from egin_dgl.data.prepare import content_hash, prepare
from egin_dgl.data.readers.columns import ColumnSelection, objects
from egin_dgl.data.readers.graph_objects import end_to_end
from egin_dgl.data.readers.molecules import FEATURES, chemistry, read_molecule
from egin_dgl.data.readers.tables import Table, read_pieces
from egin_dgl.data.targets import Class, OneColumn, check_classes, class_column
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import ConfigError, DataError

log = logging.getLogger(__name__)

AT_ONCE = 4096


@dataclass(frozen=True)
class MoleculeColumns:
    """Where things are in the table, and what is read of a molecule."""

    smiles: str = "smiles"
    target: str = "label"
    id: str | None = None  # None: the column `id` where there is one, else the number of the line
    split_column: str | None = None
    features: str = "tu"
    on_invalid: str = "raise"

    def __post_init__(self) -> None:
        for option, values in (("features", tuple(FEATURES)), ("on_invalid", ("skip", "raise"))):
            if getattr(self, option) not in values:
                raise ConfigError(
                    f"dataset.{option} must be {' or '.join(values)}, got {getattr(self, option)!r}"
                )


def load_smiles(
    path: str,
    smiles: str = "smiles",
    target: OneColumn = "label",
    id: str | None = None,
    split_column: str | None = None,
    features: Literal["tu", "rich"] = "tu",
    on_invalid: Literal["raise", "skip"] = "raise",
    self_loops: Literal["remove", "keep"] = "remove",
    node_features: Literal["degree", "constant"] = "degree",
    use_edge_features: bool = True,
    name: str | None = None,
    cache: bool = True,
    vocabulary: Vocabulary | None = None,
    class_names: Sequence[str] | None = None,
) -> GraphDataset:
    """Load molecules from a table, from the processed cache where the same file was prepared with the same options.

    A molecule that cannot be read is refused unless said otherwise: a set that shrinks in silence is not the one that a
    reported number is said to be of.
    """
    options = GraphOptions("as_given", self_loops, node_features, use_edge_features)
    columns = MoleculeColumns(smiles, target, id, split_column, features, on_invalid)
    file = Path(path).expanduser()
    _, rdkit, _ = chemistry()
    reading = {key: str(value) for key, value in asdict(columns).items()}
    return prepare(
        partial(read_smiles, file, columns, need_labels=class_names is None),
        name or file.name.split(".")[0] or file.name,
        options,
        source={"molecules": content_hash([file]), "rdkit": rdkit.rdkitVersion, "columns": reading},
        origin=str(file),
        labels_in=f"{file}, column {target!r}",
        cache=cache,
        vocabulary=vocabulary,
        class_names=class_names,
    )


def read_smiles(path: Path, columns: MoleculeColumns, need_labels: bool = True) -> GraphArrays:
    """All molecules of a table; every fault is a DataError with its line."""
    pieces: list[GraphArrays] = []
    classes: list[Class] = []
    lines: list[int] = []
    for table in read_pieces(path, AT_ONCE):
        arrays, own_lines = _piece(table, columns, need_labels)
        pieces.append(arrays)
        lines += own_lines
        classes += [] if arrays.graph_labels is None else arrays.graph_labels.tolist()
    arrays = concatenated(pieces)
    if not arrays.graphs:
        raise DataError(f"{path} lists no molecule that can be read")
    if need_labels:
        check_classes(classes, lines, str(path), columns.target)
    if arrays.skipped:
        arrays = arrays.noting(f"{len(arrays.skipped)} molecule(s) left out: {'; '.join(arrays.skipped)}")
    return arrays


def stream_smiles(path: Path, columns: MoleculeColumns, at_once: int) -> Iterator[GraphArrays]:
    """Molecules for prediction, so many lines at a time; what cannot be read is in `skipped`."""
    for table in read_pieces(path, at_once):
        yield _piece(table, replace(columns, on_invalid="skip", split_column=None), need_labels=False)[0]


def _piece(table: Table, columns: MoleculeColumns, need_labels: bool) -> tuple[GraphArrays, list[int]]:
    """The molecules of some lines, and the line of each."""
    smiles = table.column(columns.smiles, "dataset.smiles")
    classes = class_column(table, columns.target, need_labels)
    parts = (
        None if columns.split_column is None else table.column(columns.split_column, "dataset.split_column")
    )
    if columns.id is not None:
        ids = table.column(columns.id, "dataset.id")
    else:
        ids = table.columns.get("id", table.lines.astype(str))
    kept, read, skipped = [], [], []
    for row, text in enumerate(smiles):
        try:
            read.append(read_molecule(text, columns.features))
            kept.append(row)
        except DataError as error:
            reason = f"{table.where(row)}: molecule {ids[row]!r}: {error}"
            if columns.on_invalid == "raise":
                raise DataError(
                    f"{reason}; correct it, or leave such out with dataset.on_invalid=skip"
                ) from None
            skipped.append(reason)
    if parts is not None:
        table.refuse(parts == "", lambda row: f"no value in column {columns.split_column!r}")
    names = tuple(str(ids[row]) for row in kept)
    arrays = end_to_end(
        read,
        ColumnSelection(),
        ColumnSelection(),
        names,
        None if classes is None else objects([classes[row] for row in kept]),
    )
    arrays = replace(
        arrays,
        parts=() if parts is None else tuple(parts[kept]),
        smiles=tuple(smiles[kept]),
        skipped=tuple(skipped),
    )
    return arrays, table.lines[kept].tolist()
