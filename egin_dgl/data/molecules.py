"""Molecules → graphs through RDKit: what atoms and bonds are called, and which molecules share a scaffold."""

from functools import lru_cache
from typing import Any

import numpy as np

from egin_dgl.data.from_graphs import OneGraph
from egin_dgl.errors import ConfigError, DataError

FEATURES = ("tu", "rich")


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
    describe = (_atom, _bond) if features == "tu" else (_rich_atom, _rich_bond)
    ends = np.array([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in bonds], dtype=np.int64).reshape(-1, 2)
    src, dst = np.concatenate([ends, ends[:, ::-1]]).T
    bond_rows = [describe[1](bond) for bond in bonds]
    return OneGraph(
        len(atoms), src, dst, _columns([describe[0](atom) for atom in atoms]), _columns(bond_rows + bond_rows)
    )


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


def _columns(rows: list[dict]) -> dict[str, list]:
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _atom(atom: Any) -> dict:
    return {"atom": atom.GetSymbol()}


def _bond(bond: Any) -> dict:
    return {"bond": bond.GetBondType().name.lower()}


def _rich_atom(atom: Any) -> dict:
    return {
        "atom": atom.GetSymbol(),
        "charge": atom.GetFormalCharge(),
        "hydrogens": atom.GetTotalNumHs(),
        "neighbors": atom.GetDegree(),
        "hybridization": atom.GetHybridization().name.lower(),
        "chirality": atom.GetChiralTag().name.removeprefix("CHI_").lower(),
        "radicals": atom.GetNumRadicalElectrons(),
        "isotope": atom.GetIsotope(),
        "aromatic": atom.GetIsAromatic(),
        "ring": atom.IsInRing(),
    }


def _rich_bond(bond: Any) -> dict:
    return {
        "bond": bond.GetBondType().name.lower(),
        "conjugated": bond.GetIsConjugated(),
        "ring": bond.IsInRing(),
        "stereo": bond.GetStereo().name.removeprefix("STEREO").lower(),
    }
