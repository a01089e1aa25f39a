"""Morgan fingerprints (ECFP; Rogers, Hahn, 2010) and Bemis-Murcko scaffolds of molecules, with RDKit."""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from egin_dgl.data.readers.molecules import import_rdkit, parse_smiles, rdkit_errors


class MorganFingerprints:
    """Counts of the circular environments of atoms up to a radius, hashed to a number of bins.

    Args:
        radius: 2 is ECFP4, 3 is ECFP6.
        bins: length of a fingerprint.

    >>> MorganFingerprints(radius=1, bins=64).transform(["CCO", "C"]).shape
    (2, 64)
    """

    def __init__(self, radius: int = 2, bins: int = 2048):
        self.radius, self.bins = radius, bins

    @property
    def size(self) -> int:
        return self.bins

    def fit_transform(self, smiles: Sequence[str]) -> sparse.csr_array:
        """As `transform`: there is nothing to fit."""
        return self.transform(smiles)

    def transform(self, smiles: Sequence[str]) -> sparse.csr_array:
        """Fingerprints of molecules, (G, bins) float32."""
        from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

        generator = GetMorganGenerator(radius=self.radius, fpSize=self.bins)
        found = []
        for text in smiles:
            molecule = parse_smiles(text)
            with rdkit_errors(text):
                found.append(sparse.csr_array(generator.GetCountFingerprintAsNumPy(molecule)[None]))
        empty = sparse.csr_array((0, self.bins), dtype=np.float32)
        return sparse.vstack([empty, *found], format="csr", dtype=np.float32)

    def arrays(self) -> dict[str, np.ndarray]:
        return {}

    def load(self, arrays: object) -> None:
        """Nothing is fitted."""


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
