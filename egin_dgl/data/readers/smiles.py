"""A table of molecules as SMILES, whole for training or in chunks for prediction."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from egin_dgl.data.arrays import GraphArrays
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.prepare import GraphOptions, hash_files, prepare
from egin_dgl.data.readers.graph_objects import concat_graphs
from egin_dgl.data.readers.molecules import import_rdkit, read_molecule
from egin_dgl.data.readers.tables import Table, read_chunks, read_table
from egin_dgl.data.targets import OneColumn, check_classes, read_classes
from egin_dgl.errors import DataError
from egin_dgl.options import validate_options


@dataclass(frozen=True)
class MoleculeColumns:
    """Columns of the table, and how its molecules are read; see `load_smiles`."""

    smiles: str = "smiles"
    target: OneColumn = "label"
    id: str | None = None
    split_column: str | None = None
    features: Literal["tu", "rich"] = "tu"
    on_invalid: Literal["raise", "skip"] = "raise"

    def __post_init__(self) -> None:
        validate_options(MoleculeColumns, vars(self), "dataset")


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
) -> GraphDataset:
    """Load molecules from a table with a header, delimited by , ; or tab and possibly gzipped. Needs RDKit.

    Args:
        path: The table.
        smiles: Column of the SMILES strings.
        target: Column of the class.
        id: Column of the names; default: the column ``id`` if there is one, else line numbers.
        split_column: Column with train, validation or test, or with fold numbers.
        features: "tu" (atom symbol, bond type) or "rich" (also charge, hydrogens, chirality, rings, …).
        on_invalid: Molecules that RDKit cannot parse: "raise" an error or "skip" them with a warning.
        self_loops, node_features, use_edge_features: See `GraphOptions`.
        name: Name of the dataset; default: that of the file.
        cache: Use the cache of prepared datasets.
    """
    options = GraphOptions("as_given", self_loops, node_features, use_edge_features)
    columns = MoleculeColumns(smiles, target, id, split_column, features, on_invalid)
    file = Path(path).expanduser()
    _, rdkit, _ = import_rdkit()
    reading = {key: str(value) for key, value in asdict(columns).items()}
    source = {"molecules": hash_files(file), "rdkit": rdkit.rdkitVersion, "columns": reading}
    name = name or file.name.split(".")[0] or file.name
    return prepare(partial(read_smiles, file, columns), name, options, source, str(file), cache)


def read_smiles(path: Path, columns: MoleculeColumns) -> GraphArrays:
    """Read all molecules of a table; every DataError names the line."""
    arrays = _read_molecules(read_table(path), columns, need_labels=True)
    if arrays.skipped:
        skipped = f"{len(arrays.skipped)} molecule(s) skipped: {'; '.join(arrays.skipped)}"
        return replace(arrays, warnings=(skipped,))
    return arrays


def stream_smiles(path: Path, columns: MoleculeColumns, chunk_size: int) -> Iterator[GraphArrays]:
    """Molecules for prediction, in chunks; invalid ones are listed in `GraphArrays.skipped`."""
    columns = replace(columns, on_invalid="skip", split_column=None)
    for table in read_chunks(path, chunk_size):
        yield _read_molecules(table, columns, need_labels=False)


def _read_molecules(table: Table, columns: MoleculeColumns, need_labels: bool) -> GraphArrays:
    """The valid molecules of some rows."""
    smiles = table.column(columns.smiles, "dataset.smiles")
    classes = read_classes(table, columns.target, need_labels)
    splits = None
    if columns.split_column is not None:
        splits = table.filled_column(columns.split_column, "dataset.split_column")
    if columns.id is not None:
        ids = table.column(columns.id, "dataset.id")
    else:
        ids = table.columns.get("id", table.lines.astype(str))
    rows, molecules, skipped = [], [], []
    for row, text in enumerate(smiles):
        try:
            molecules.append(read_molecule(text, columns.features))
            rows.append(row)
        except DataError as error:
            reason = f"{table.locate(row)}: molecule {ids[row]!r}: {error}"
            if columns.on_invalid == "raise":
                raise DataError(f"{reason}; correct it, or skip it with dataset.on_invalid=skip") from None
            skipped.append(reason)
    if need_labels and classes is not None:
        if not rows:
            raise DataError(f"{table.path} lists no molecule that can be read")
        check_classes(classes[rows], table.lines[rows], table.path, columns.target)
    return replace(
        concat_graphs(molecules, tuple(str(ids[row]) for row in rows)),
        graph_labels=None if classes is None else classes[rows],
        splits=() if splits is None else tuple(splits[rows]),
        smiles=tuple(smiles[rows]),
        skipped=tuple(skipped),
    )
