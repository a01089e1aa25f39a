"""Molecules → graphs with RDKit: atom and bond features, and scaffolds."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from sys import intern
from typing import Any

import numpy as np

from egin_dgl.data.arrays import GraphArrays, SourceRows
from egin_dgl.data.readers.columns import object_array
from egin_dgl.data.readers.graph_objects import concat_graphs
from egin_dgl.data.readers.libraries import GraphObject
from egin_dgl.errors import ConfigError, DataError, one_line

# Strings are interned: a table of molecules has millions of equal ones.
ATOM: dict[str, Callable] = {"atom": lambda atom: intern(atom.GetSymbol())}
BOND: dict[str, Callable] = {"bond": lambda bond: intern(bond.GetBondType().name.lower())}
RICH_ATOM = ATOM | {
    "charge": lambda atom: atom.GetFormalCharge(),
    "hydrogens": lambda atom: atom.GetTotalNumHs(),
    "neighbors": lambda atom: atom.GetDegree(),
    "hybridization": lambda atom: intern(atom.GetHybridization().name.lower()),
    "chirality": lambda atom: intern(atom.GetChiralTag().name.removeprefix("CHI_").lower()),
    "radicals": lambda atom: atom.GetNumRadicalElectrons(),
    "isotope": lambda atom: atom.GetIsotope(),
    "aromatic": lambda atom: atom.GetIsAromatic(),
    "ring": lambda atom: atom.IsInRing(),
}
RICH_BOND = BOND | {
    "conjugated": lambda bond: bond.GetIsConjugated(),
    "ring": lambda bond: bond.IsInRing(),
    "stereo": lambda bond: intern(bond.GetStereo().name.removeprefix("STEREO").lower()),
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
    except DataError:
        raise
    except Exception as error:  # exceptions of C++ have no common class
        raise DataError(f"{smiles[:60]!r} is not a molecule ({one_line(error)[:200]})") from None


def read_molecule(molecule: Any, features: str = "tu") -> GraphObject:
    """A molecule without explicit hydrogens, each bond in both directions.

    Args:
        molecule: A SMILES string or RDKit's Mol; a DataError gives the reason if it is invalid.
        features: "tu" (atom symbol and bond type, as in the TU datasets) or "rich".
    """
    smiles = molecule if isinstance(molecule, str) else "this Mol"
    molecule = parse_smiles(molecule) if isinstance(molecule, str) else without_hydrogens(molecule)
    atoms, bonds = list(molecule.GetAtoms()), list(molecule.GetBonds())
    ends = np.array([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in bonds], dtype=np.int64).reshape(-1, 2)
    src, dst = np.concatenate([ends, ends[:, ::-1]]).T
    atom_features, bond_features = FEATURES[features]
    with rdkit_errors(smiles):
        node_columns = {name: [read(atom) for atom in atoms] for name, read in atom_features.items()}
        edge_columns = {name: [read(bond) for bond in bonds] * 2 for name, read in bond_features.items()}
    return GraphObject(len(atoms), src, dst, node_columns, edge_columns)


def is_no_molecule(molecule: object) -> bool:
    """None, as RDKit returns for what it cannot parse, or NaN, as pandas has it."""
    return molecule is None or (isinstance(molecule, float) and molecule != molecule)


def molecules_to_arrays(molecules: Sequence, features: str = "tu", first: int = 0) -> GraphArrays:
    """SMILES strings and RDKit molecules, named by their number from `first`; invalid ones are listed in `GraphArrays.rows`."""
    read, graph, reasons = [], np.full(len(molecules), -1), [""] * len(molecules)
    for number, molecule in enumerate(molecules):
        try:
            if is_no_molecule(molecule):
                raise DataError("no molecule")
            read.append(read_molecule(molecule, features))
            graph[number] = len(read) - 1
        except DataError as error:
            reasons[number] = str(error)
    valid = np.flatnonzero(graph >= 0).tolist()
    are_texts = all(isinstance(molecule, str) or is_no_molecule(molecule) for molecule in molecules)
    return replace(
        concat_graphs(read, tuple(str(first + number) for number in valid)),
        smiles=tuple(molecules[number] for number in valid) if are_texts else (),
        skipped=tuple(f"molecule {first + i}: {reason}" for i, reason in enumerate(reasons) if reason),
        rows=SourceRows(graph, {"smiles": object_array(molecules)} if are_texts else {}, tuple(reasons)),
    )


def parse_smiles(smiles: str) -> Any:
    """RDKit's molecule, or a DataError with the reason."""
    Chem, _, _ = import_rdkit()
    if len(smiles) > MAX_SMILES:
        raise DataError(f"{smiles[:20]!r}… has {len(smiles)} characters, more than {MAX_SMILES}")
    with rdkit_errors(smiles):
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


def without_hydrogens(molecule: Any) -> Any:
    """RDKit's molecule as `parse_smiles` would return it, atoms in the same order; a DataError with the reason if invalid."""
    Chem, _, _ = import_rdkit()
    with rdkit_errors("this Mol"):
        molecule = Chem.RemoveHs(molecule)
    if molecule.GetNumAtoms() == 0:
        raise DataError("no atoms")
    return molecule


def scaffold_groups(smiles: tuple[str, ...], acyclic: bool = False) -> tuple[np.ndarray, list[str]]:
    """Number of each molecule's Bemis-Murcko scaffold (G,), and the scaffolds.

    Each acyclic molecule has its own; if `acyclic`, they all have the same, "", as in DeepChem and OGB.
    """
    Chem, _, MurckoScaffold = import_rdkit()
    known: dict[str, int] = {}
    groups = []
    for text in smiles:
        molecule = parse_smiles(text)
        with rdkit_errors(text):
            scaffold = Chem.MolToSmiles(MurckoScaffold.GetScaffoldForMol(molecule), isomericSmiles=False)
            name = scaffold if scaffold or acyclic else Chem.MolToSmiles(molecule)
            groups.append(known.setdefault(name, len(known)))
    return np.array(groups), list(known)
