"""keep_freed_memory, as the system sees it."""

import platform
import subprocess
import sys

import pytest

# A separate program: the setting is per process.
MEBIBYTES_AFTER = """
import resource
from egin_dgl.training.parallel.memory import keep_freed_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 2**20

if {kept}:
    keep_freed_memory()
before = resident()
results = [bytearray(b"x") * 2**24 for _ in range(8)]  # 16 MiB each
del results
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_freed_memory_stays_in_the_process():
    by_default, kept = map(mebibytes_after_use, (False, True))
    assert by_default < 32
    assert kept > 96


def mebibytes_after_use(kept: bool) -> int:
    """Resident memory after 128 MiB were used and freed."""
    program = [sys.executable, "-c", MEBIBYTES_AFTER.format(kept=kept)]
    return int(subprocess.run(program, capture_output=True, text=True, check=True).stdout)
