"""A table of molecules as SMILES, whole for training or in chunks for prediction."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from egin_dgl.data.arrays import GraphArrays, concat_arrays
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.encode import GraphOptions
from egin_dgl.data.prepare import hash_files, prepare
from egin_dgl.data.readers.columns import object_array
from egin_dgl.data.readers.graph_lists import concat_graphs
from egin_dgl.data.readers.molecules import FEATURES, import_rdkit, read_molecule
from egin_dgl.data.readers.tables import Table, read_chunks
from egin_dgl.data.targets import Class, OneColumn, check_classes, read_classes
from egin_dgl.errors import ConfigError, DataError

CHUNK_SIZE = 4096


@dataclass(frozen=True)
class MoleculeColumns:
    """Columns of the table, and how its molecules are read; see `load_smiles`."""

    smiles: str = "smiles"
    target: str = "label"
    id: str | None = None
    split_column: str | None = None
    features: str = "tu"
    on_invalid: str = "raise"

    def __post_init__(self) -> None:
        for option, values in (("features", tuple(FEATURES)), ("on_invalid", ("skip", "raise"))):
            if (value := getattr(self, option)) not in values:
                raise ConfigError(f"dataset.{option} must be {' or '.join(values)}, got {value!r}")


def load_smiles(
    path: str,
    smiles: str = "smiles",
    target: OneColumn = "label",
    id: str | None = None,
    split_column: str | None = None,
    features: str = "tu",
    on_invalid: str = "raise",
    self_loops: str = "remove",
    node_features: str = "degree",
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
    return prepare(
        partial(read_smiles, file, columns),
        name or file.name.split(".")[0] or file.name,
        options,
        source={"molecules": hash_files([file]), "rdkit": rdkit.rdkitVersion, "columns": reading},
        origin=str(file),
        labels_in=f"{file}, column {target!r}",
        cache=cache,
    )


def read_smiles(path: Path, columns: MoleculeColumns) -> GraphArrays:
    """Read all molecules of a table; every DataError names the line."""
    chunks: list[GraphArrays] = []
    classes: list[Class] = []
    lines: list[int] = []
    for table in read_chunks(path, CHUNK_SIZE):
        arrays, chunk_lines = _read_chunk(table, columns, need_labels=True)
        chunks.append(arrays)
        lines += chunk_lines
        classes += [] if arrays.graph_labels is None else arrays.graph_labels.tolist()
    arrays = concat_arrays(chunks)
    if not arrays.graphs:
        raise DataError(f"{path} lists no molecule that can be read")
    check_classes(classes, lines, str(path), columns.target)
    if arrays.skipped:
        arrays = arrays.with_warning(
            f"{len(arrays.skipped)} molecule(s) skipped: {'; '.join(arrays.skipped)}"
        )
    return arrays


def stream_smiles(path: Path, columns: MoleculeColumns, chunk_size: int) -> Iterator[GraphArrays]:
    """Molecules for prediction, in chunks; invalid ones are listed in `GraphArrays.skipped`."""
    columns = replace(columns, on_invalid="skip", split_column=None)
    for table in read_chunks(path, chunk_size):
        yield _read_chunk(table, columns, need_labels=False)[0]


def _read_chunk(table: Table, columns: MoleculeColumns, need_labels: bool) -> tuple[GraphArrays, list[int]]:
    """The valid molecules of some rows, and the line of each."""
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
    arrays = replace(
        concat_graphs(molecules, tuple(str(ids[row]) for row in rows)),
        graph_labels=None if classes is None else object_array(classes[row] for row in rows),
        splits=() if splits is None else tuple(splits[rows]),
        smiles=tuple(smiles[rows]),
        skipped=tuple(skipped),
    )
    return arrays, table.lines[rows].tolist()
