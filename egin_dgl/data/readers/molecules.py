"""Molecules → graphs with RDKit: atom and bond features."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from egin_dgl.data.arrays import GraphArrays, RawColumns, SourceRows
from egin_dgl.data.readers.columns import object_array
from egin_dgl.data.readers.libraries import GraphObject
from egin_dgl.errors import ConfigError, DataError, one_line


def _enum(prefix: str = "") -> Callable[[Any], str]:
    return lambda value: value.name.removeprefix(prefix).lower()


# Columns of atoms and bonds: RDKit's method, and the label of what it returns.
Features: TypeAlias = Mapping[str, tuple[str, Callable[[Any], int | str]]]
ATOM: Features = {"atom": ("GetSymbol", str)}
BOND: Features = {"bond": ("GetBondType", _enum())}
RICH_ATOM: Features = {
    **ATOM,
    "charge": ("GetFormalCharge", int),
    "hydrogens": ("GetTotalNumHs", int),
    "neighbors": ("GetDegree", int),
    "hybridization": ("GetHybridization", _enum()),
    "chirality": ("GetChiralTag", _enum("CHI_")),
    "radicals": ("GetNumRadicalElectrons", int),
    "isotope": ("GetIsotope", int),
    "aromatic": ("GetIsAromatic", str),
    "ring": ("IsInRing", str),
}
RICH_BOND: Features = {
    **BOND,
    "conjugated": ("GetIsConjugated", str),
    "ring": ("IsInRing", str),
    "stereo": ("GetStereo", _enum("STEREO")),
}
FEATURES = {"tu": (ATOM, BOND), "rich": (RICH_ATOM, RICH_BOND)}
MAX_SMILES = 10_000  # characters; RDKit takes minutes for molecules that are ten times as long


@lru_cache
def import_rdkit() -> Any:
    """RDKit's Chem, rdBase and MurckoScaffold, or an error that names the package to install."""
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem.Scaffolds import MurckoScaffold
    except ImportError as error:
        raise ConfigError(f"molecules need RDKit ({error}): pip install '.[chem]'") from None
    return Chem, rdBase, MurckoScaffold


@contextmanager
def rdkit_errors(smiles: str) -> Iterator[None]:
    """Turn what RDKit raises about a molecule, instead of returning None, into a DataError; RDKit prints nothing."""
    _, rdBase, _ = import_rdkit()
    try:
        with rdBase.BlockLogs():
            yield
    except Exception as error:  # exceptions of C++ have no common class
        raise DataError(describe_error(smiles, error)) from None


def describe_error(molecule: Any, error: Exception) -> str:
    """Why RDKit cannot read a molecule."""
    smiles = f"{molecule[:60]!r}" if isinstance(molecule, str) else "this Mol"
    return (
        str(error)
        if isinstance(error, DataError)
        else f"{smiles} is not a molecule ({one_line(error)[:200]})"
    )


class MoleculeColumns:
    """Atoms and bonds of molecules in one list for each feature, as RDKit returns them.

    A list is filled by `map` with a method of RDKit and turned into labels as a whole: there is no Python code for an atom.
    """

    def __init__(self, features: str = "tu"):
        from rdkit.Chem.rdchem import Atom, Bond

        self.features = FEATURES[features]
        atoms, bonds = ([method for method, _ in side.values()] for side in self.features)
        self.readers = [
            [getattr(Atom, method) for method in atoms],
            [getattr(Bond, method) for method in (*bonds, "GetBeginAtomIdx", "GetEndAtomIdx")],
        ]
        self.columns: list[list[list]] = [[[] for _ in readers] for readers in self.readers]
        self.sizes: list[tuple[int, int]] = []  # atoms and bonds of each molecule

    def add(self, molecule: Any) -> None:
        """Append a molecule, or nothing if RDKit raises an error."""
        atoms, bonds = molecule.GetNumAtoms(), molecule.GetNumBonds()
        # Twice as fast as to iterate over GetAtoms() and GetBonds().
        owners = [list(map(molecule.GetAtomWithIdx, range(atoms)))]
        owners.append(list(map(molecule.GetBondWithIdx, range(bonds))))
        found = [
            [list(map(read, own)) for read in side] for side, own in zip(self.readers, owners, strict=True)
        ]
        for column, values in zip(chain(*self.columns), chain(*found), strict=True):
            column.extend(values)
        self.sizes.append((atoms, bonds))

    def to_arrays(self) -> GraphArrays:
        """The molecules, each bond in both directions: first all bonds of a molecule, then all of them reversed."""
        atoms, bonds = np.array(self.sizes, dtype=np.int64).reshape(-1, 2).T
        numbers = np.arange(len(atoms))
        *bond_columns, begin, end = self.columns[1]
        bond_molecule = np.repeat(numbers, bonds)
        ends = np.array([begin, end], dtype=np.int64) + (np.cumsum(atoms) - atoms)[bond_molecule]
        forward = np.arange(len(bond_molecule)) + (np.cumsum(bonds) - bonds)[bond_molecule]
        backward = forward + bonds[bond_molecule]
        order = np.empty(2 * len(forward), dtype=np.int64)  # the bond of each directed edge
        order[forward] = order[backward] = np.arange(len(forward))
        src, dst = ends[:, order]
        src[backward], dst[backward] = ends[::-1]
        edges = code_columns(self.features[1], bond_columns)
        return GraphArrays(
            node_graph=np.repeat(numbers, atoms),
            src=src,
            dst=dst,
            graphs=len(atoms),
            nodes=code_columns(self.features[0], self.columns[0]),
            edges=edges.take(order, len(order)),
        )


def code_columns(features: Features, columns: Sequence[list]) -> RawColumns:
    """Values as RDKit returns them → coded labels."""
    import pandas as pd  # slow to import, and only molecules need it

    if not columns[0]:
        return RawColumns()
    codes, values = [], []
    for (_, label), column in zip(features.values(), columns, strict=True):
        index, distinct = pd.factorize(object_array(column))
        values.append(tuple(label(value) for value in distinct))
        codes.append(index.astype(np.min_scalar_type(len(distinct))))
    return RawColumns(labels=np.stack(codes, axis=1), label_names=tuple(features), label_values=tuple(values))


def read_molecule(molecule: Any, features: str = "tu") -> GraphObject:
    """A molecule without explicit hydrogens, each bond in both directions.

    Args:
        molecule: A SMILES string or RDKit's Mol; a DataError gives the reason if it is invalid.
        features: "tu" (atom symbol and bond type, as in the TU datasets) or "rich".
    """
    (arrays, (reason,)) = read_several([molecule], features)
    if reason:
        raise DataError(reason)
    nodes, edges = (
        {name: np.asarray(column).tolist() for name, column in columns.by_name().items()}
        for columns in (arrays.nodes, arrays.edges)
    )
    return GraphObject(len(arrays.node_graph), arrays.src, arrays.dst, nodes, edges)


def read_several(
    molecules: Sequence, features: str = "tu", invalid: Mapping[int, str] | None = None
) -> tuple[GraphArrays, list[str]]:
    """The valid ones of several molecules, see `read_molecule`, and why each is invalid, "" if it is valid.

    `invalid` gives the reasons of those that are known to be invalid, by their position.
    """
    _, rdBase, _ = import_rdkit()
    columns, reasons = MoleculeColumns(features), [""] * len(molecules)
    with rdBase.BlockLogs():
        for number, molecule in enumerate(molecules):
            try:
                if invalid and number in invalid:
                    raise DataError(invalid[number])
                if is_no_molecule(molecule):
                    raise DataError("no molecule")
                is_text = isinstance(molecule, str)
                columns.add(_parse_smiles(molecule) if is_text else _without_hydrogens(molecule))
            except Exception as error:  # exceptions of C++ have no common class
                reasons[number] = describe_error(molecule, error)
    return columns.to_arrays(), reasons


def is_no_molecule(molecule: object) -> bool:
    """None, as RDKit returns for what it cannot parse, or NaN, as pandas has it."""
    return molecule is None or (isinstance(molecule, float) and molecule != molecule)


def molecules_to_arrays(molecules: Sequence, features: str = "tu", first: int = 0) -> GraphArrays:
    """SMILES strings and RDKit molecules, named by their number from `first`; invalid ones are listed in `GraphArrays.rows`."""
    arrays, reasons = read_several(molecules, features)
    valid = [number for number, reason in enumerate(reasons) if not reason]
    are_texts = all(isinstance(molecule, str) or is_no_molecule(molecule) for molecule in molecules)
    return replace(
        arrays,
        ids=tuple(str(first + number) for number in valid),
        smiles=tuple(molecules[number] for number in valid) if are_texts else (),
        skipped=tuple(f"molecule {first + i}: {reason}" for i, reason in enumerate(reasons) if reason),
        rows=SourceRows(
            graph_numbers(reasons), {"smiles": object_array(molecules)} if are_texts else {}, tuple(reasons)
        ),
    )


def graph_numbers(reasons: Sequence[str]) -> np.ndarray:
    """(R,) number of the graph of each row, -1 where there is a reason why it has none."""
    valid = np.array([not reason for reason in reasons], dtype=bool)
    return np.where(valid, np.cumsum(valid) - 1, -1)


def parse_smiles(smiles: str) -> Any:
    """RDKit's molecule, or a DataError with the reason."""
    with rdkit_errors(smiles):
        return _parse_smiles(smiles)


def _parse_smiles(smiles: str) -> Any:
    Chem, _, _ = import_rdkit()
    if len(smiles) > MAX_SMILES:
        raise DataError(f"{smiles[:20]!r}… has {len(smiles)} characters, more than {MAX_SMILES}")
    # RDKit reads what follows a space as a name and stops at a zero byte, so it would ignore half a cell.
    complete = smiles.isprintable() and (" " not in smiles or "|" in smiles)
    molecule = Chem.MolFromSmiles(smiles) if complete else None
    if molecule is None:
        raw = Chem.MolFromSmiles(smiles, sanitize=False)
        problems = [] if raw is None else [p.Message() for p in Chem.DetectChemistryProblems(raw)]
        raise DataError(
            f"{smiles[:60]!r} is not a molecule ({problems[0] if problems else 'invalid SMILES'})"
        )
    if molecule.GetNumAtoms() == 0:
        raise DataError("no atoms")
    return molecule


def _without_hydrogens(molecule: Any) -> Any:
    """RDKit's molecule as `_parse_smiles` would return it, atoms in the same order."""
    Chem, _, _ = import_rdkit()
    molecule = Chem.RemoveHs(molecule)
    if molecule.GetNumAtoms() == 0:
        raise DataError("no atoms")
    return molecule
