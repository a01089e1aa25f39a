"""Molecules → graphs through RDKit: what atoms and bonds are called, and which molecules share a scaffold."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from egin_dgl.data.readers.graph_objects import OneGraph
from egin_dgl.errors import ConfigError, DataError

# What is read of an atom and of a bond, by column.
ATOM: dict[str, Callable] = {"atom": lambda atom: atom.GetSymbol()}
BOND: dict[str, Callable] = {"bond": lambda bond: bond.GetBondType().name.lower()}
RICH_ATOM = ATOM | {
    "charge": lambda atom: atom.GetFormalCharge(),
    "hydrogens": lambda atom: atom.GetTotalNumHs(),
    "neighbors": lambda atom: atom.GetDegree(),
    "hybridization": lambda atom: atom.GetHybridization().name.lower(),
    "chirality": lambda atom: atom.GetChiralTag().name.removeprefix("CHI_").lower(),
    "radicals": lambda atom: atom.GetNumRadicalElectrons(),
    "isotope": lambda atom: atom.GetIsotope(),
    "aromatic": lambda atom: atom.GetIsAromatic(),
    "ring": lambda atom: atom.IsInRing(),
}
RICH_BOND = BOND | {
    "conjugated": lambda bond: bond.GetIsConjugated(),
    "ring": lambda bond: bond.IsInRing(),
    "stereo": lambda bond: bond.GetStereo().name.removeprefix("STEREO").lower(),
}
FEATURES = {"tu": (ATOM, BOND), "rich": (RICH_ATOM, RICH_BOND)}


@lru_cache
def chemistry() -> Any:
    """RDKit, which is not needed for anything else, or one sentence how to get it."""
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem.Scaffolds import MurckoScaffold
    except ImportError as error:
        raise ConfigError(f"molecules are read with RDKit ({error}): pip install 'egin-dgl[chem]'") from None
    return Chem, rdBase, MurckoScaffold


def read_molecule(smiles: str, features: str = "tu") -> OneGraph:
    """A molecule without explicit hydrogens, each bond in both directions; a DataError says why it cannot be read.

    tu: atoms by symbol, bonds by type, as in the molecules of the TU collection. rich: much more of both.
    """
    molecule = parse(smiles)
    atoms, bonds = list(molecule.GetAtoms()), list(molecule.GetBonds())
    ends = np.array([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in bonds], dtype=np.int64).reshape(-1, 2)
    src, dst = np.concatenate([ends, ends[:, ::-1]]).T
    of_atom, of_bond = FEATURES[features]
    node_columns = {name: [read(atom) for atom in atoms] for name, read in of_atom.items()}
    edge_columns = {name: [read(bond) for bond in bonds] * 2 for name, read in of_bond.items()}
    return OneGraph(len(atoms), src, dst, node_columns, edge_columns)


def parse(smiles: str) -> Any:
    """RDKit's molecule, or a DataError with the reason; RDKit's own messages are kept from the terminal."""
    Chem, rdBase, _ = chemistry()
    with rdBase.BlockLogs():
        # RDKit takes what follows a space for a name and stops at a zero byte: half a cell would be read in silence.
        whole = smiles.isprintable() and (" " not in smiles or "|" in smiles)
        molecule = Chem.MolFromSmiles(smiles) if whole else None
        if molecule is None:
            raw = Chem.MolFromSmiles(smiles, sanitize=False)
            problems = [] if raw is None else [p.Message() for p in Chem.DetectChemistryProblems(raw)]
            raise DataError(f"{smiles[:60]!r} is not a molecule ({problems[0] if problems else 'no SMILES'})")
    if molecule.GetNumAtoms() == 0:
        raise DataError("no atoms")
    return molecule


def scaffold_groups(smiles: tuple[str, ...]) -> tuple[np.ndarray, list[str]]:
    """The number of each molecule's scaffold (G,), and the scaffolds.

    Bemis and Murcko's scaffold: rings and what links them. A molecule without a ring is a group of its own.
    """
    Chem, rdBase, MurckoScaffold = chemistry()
    known: dict[str, int] = {}
    groups = []
    with rdBase.BlockLogs():
        for text in smiles:
            molecule = parse(text)
            scaffold = Chem.MolToSmiles(MurckoScaffold.GetScaffoldForMol(molecule), isomericSmiles=False)
            groups.append(known.setdefault(scaffold or Chem.MolToSmiles(molecule), len(known)))
    return np.array(groups), list(known)
