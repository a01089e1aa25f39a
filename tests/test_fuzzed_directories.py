"""Every key and value of the files of a run or sweep directory, changed in ways that an attacker or an accident would choose:
one sentence or the right result, and no code, no write elsewhere, no connection, no control character on the terminal."""

from random import Random

import pytest
from attacks.attempts import Fall
from attacks.directories import FILES, MutatedDirectories

COUNTS = pytest.mark.parametrize("count", [30, pytest.param(100, marks=pytest.mark.slow)])


@COUNTS
@pytest.mark.parametrize("file", FILES)
def test_mutated_directories(small_run, file, count, tmp_path):
    attack, falls = MutatedDirectories(small_run, tmp_path), []
    for number in range(count):
        try:
            attack(Random(f"{file} {number}"), file)
        except Fall as fall:
            falls.append(str(fall))
    assert not falls, "\n".join(falls)
