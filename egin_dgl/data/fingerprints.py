"""Morgan fingerprints (ECFP; Rogers, Hahn, 2010) of molecules, with RDKit."""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from egin_dgl.data.readers.molecules import parse_smiles, rdkit_errors


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
