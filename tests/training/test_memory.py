"""Memory that is kept between steps, as the system sees it."""

import platform
import subprocess
import sys

import pytest

# A program of its own: how glibc treats memory is a matter of the whole process.
MEBIBYTES_AFTER = """
import resource
import torch
from egin_dgl.training.parallel.memory import keep_freed_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 2**20

if {kept}:
    keep_freed_memory()
before = resident()
results = [torch.ones(4 * 2**20) for _ in range(8)]  # 16 MiB each
del results
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's way with memory is changed")
def test_what_is_let_go_of_stays_at_hand():
    by_default, kept = map(mebibytes_after_use, (False, True))
    assert by_default < 32
    assert kept > 96


def mebibytes_after_use(kept: bool) -> int:
    """Of 128 that were used and let go of."""
    program = [sys.executable, "-c", MEBIBYTES_AFTER.format(kept=kept)]
    return int(subprocess.run(program, capture_output=True, text=True, check=True).stdout)
