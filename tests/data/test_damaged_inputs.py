"""Input files as a bad disk or a careless hand leaves them, also those of DGL, which itself crashes on many of them."""

from random import Random

import pytest
from attacks.inputs import KINDS, DamagedInputs


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_read_or_refused_in_one_sentence(kind, tmp_path):
    if kind == "smiles":
        pytest.importorskip("rdkit", reason="molecules are read with RDKit, the extra `chem`")
    attack = DamagedInputs(tmp_path)
    messages = [attack(Random(f"{kind} {number}"), kind) for number in range(40)]
    assert sum(message is not None for message in messages) > 10
