"""Files of molecules as tables: delimited tables, SDF (.sdf) and SMILES files (.smi), each possibly gzipped.

The records of an SDF file become rows with the columns `smiles` (made from the structure), `id` (its title) and one for each
SD property; the lines of a SMILES file, "SMILES name" without a header, become rows with the columns `smiles` and `id`.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from egin_dgl.data.readers.columns import object_array
from egin_dgl.data.readers.molecules import import_rdkit, rdkit_errors
from egin_dgl.data.readers.tables import Table, open_text, read_chunks
from egin_dgl.errors import DataError

MAX_RECORD = 2_000_000  # characters of an SDF record
# A SMILES string, RDKit's extensions between bars, and the rest of the line, a name.
SMILES_LINE = re.compile(r"(\S+)(\s+\|[^|]*\|)?\s*(.*)")
PROPERTY = re.compile(r">.*?<(.+)>")  # the line before the value of an SD property

Row = tuple[int, dict[str, str], str | None]  # line, cells by column, and why the molecule is invalid


def read_molecule_chunks(
    path: Path, size: int | None, smiles: str = "smiles", id: str = "id"
) -> Iterator[Table]:
    """Rows of a file in chunks of at most `size`, at least one chunk; the ending of its name tells the format.

    Args:
        smiles, id: names of the columns that SDF and SMILES files are given.
    """
    ending = next((end for end in path.suffixes[-2:] if end.lower() in (".sdf", ".sd", ".smi")), "").lower()
    if not ending:
        yield from read_chunks(path, size)
        return
    names = {smiles: None, id: None}
    if ending != ".smi":
        names |= dict.fromkeys(_property_names(path))
    rows = _smiles_lines(path, smiles, id) if ending == ".smi" else _sdf_records(path, smiles, id)
    is_first = True
    while (chunk := list(islice(rows, size))) or is_first:
        yield _make_table(path, list(names), chunk)
        is_first = False


def count_molecules(path: Path) -> int:
    """Lines of a table without its header, or records of an SDF file: at least as many as there are molecules."""
    is_sdf = any(end.lower() in (".sdf", ".sd") for end in path.suffixes[-2:])
    with open_text(path) as stream:
        return sum(line.startswith("$$$$") for line in stream) if is_sdf else sum(1 for _ in stream) - 1


def _make_table(path: Path, names: Iterable[str], rows: list[Row]) -> Table:
    columns = {name: object_array(cells.get(name, "") for _, cells, _ in rows) for name in names}
    invalid = {number: reason for number, (_, _, reason) in enumerate(rows) if reason}
    return Table(path, columns, np.array([line for line, _, _ in rows], dtype=np.int64), invalid)


def _smiles_lines(path: Path, smiles: str, id: str) -> Iterator[Row]:
    with open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            match = SMILES_LINE.fullmatch(line.strip())
            # Some programs write a header, which is no molecule.
            if match is None or (number == 1 and match[1].lower() in ("smiles", "#smiles")):
                continue
            yield number, {smiles: match[1] + (match[2] or ""), id: match[3] or str(number)}, None


def _property_names(path: Path) -> list[str]:
    """SD properties of any record, in the order in which they appear: all chunks have the same columns."""
    with open_text(path) as stream:
        return list(dict.fromkeys(match[1] for line in stream if (match := PROPERTY.match(line))))


def _sdf_records(path: Path, smiles: str, id: str) -> Iterator[Row]:
    record: list[str] = []
    first = number = 1  # lines
    with open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            if not line.startswith("$$$$"):
                record.append(line)
                continue
            yield first, *_read_record(record, first, smiles, id)
            record, first = [], number + 1
        if any(line.strip() for line in record):  # the last delimiter may be missing
            yield first, *_read_record(record, first, smiles, id)


def _read_record(lines: list[str], first: int, smiles: str, id: str) -> tuple[dict[str, str], str | None]:
    """The cells of a record, and why it is no molecule, if so."""
    Chem, _, _ = import_rdkit()
    title, text = lines[0].strip() if lines else "", "".join(lines)
    cells = {id: title or str(first)}
    if len(text) > MAX_RECORD:
        return cells, f"a record of {len(text)} characters, more than {MAX_RECORD}"
    supplier = Chem.SDMolSupplier()
    try:
        with rdkit_errors(title):
            supplier.SetData(text, sanitize=False, removeHs=False)
            raw = supplier[0] if len(supplier) else None
            if raw is None:
                return cells, "not a structure of an SDF file"
            cells |= {name: raw.GetProp(name).strip() for name in raw.GetPropNames()}
            supplier.SetData(text)
            molecule = supplier[0]
            if molecule is None:
                problems = [problem.Message() for problem in Chem.DetectChemistryProblems(raw)]
                return cells, f"not a molecule ({problems[0] if problems else 'invalid structure'})"
            cells[smiles] = Chem.MolToSmiles(molecule)
    except DataError as error:
        return cells, str(error)
    return cells, None
