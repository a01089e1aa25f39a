"""Which instructions compute, and so in which order sums are taken: `reproducible` makes it the same on every machine.

Each library below chooses its code by the processor, and another code rounds otherwise. All are told by variables of the
environment, which most of them read once, as they are loaded; so a setting belongs to a process and not to a run.
Nothing that computes is imported here: `start` has its say before torch, numpy and DGL are there.
"""

import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

MARK = "EGIN_REPRODUCIBLE"  # what `switch_off` goes by, in processes that inherit the environment

# avx2 is for Intel processors since 2013 (MKL promises its AVX2 branch for no other maker), any for every x86-64.
FLAGS = {
    "avx2": {
        "MKL_CBWR": "AVX2",  # matrix products of torch
        "ATEN_CPU_CAPABILITY": "avx2",  # everything else of torch
        "ONEDNN_MAX_CPU_ISA": "AVX2",  # convolutions of torch
        "OPENBLAS_CORETYPE": "Haswell",  # products of numpy, scipy and scikit-learn
        "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4",
        "GLIBC_TUNABLES": "",  # exp, log and pow of the C library: with FMA
    },
    "any": {
        "MKL_CBWR": "COMPATIBLE",
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OPENBLAS_CORETYPE": "Prescott",
        # Names of numpy before and since 2.4; of those that a processor or a numpy has not it says nothing.
        "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR "
        "X86_V3 X86_V4",
        # Names of glibc since 2.33 and before.
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable,-FMA4_Usable",
    },
}
CHOICES = (False, *FLAGS)
# One thread from the start, as a sum that threads share is taken in parts.
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# Variables that decide digits where nothing is set: kept with a run.
DECIDING = (*FLAGS["any"], "LIBXSMM_TARGET", MARK)


def environment_at_start() -> dict[str, str]:
    """What this process was started with: a variable set later comes too late for what is loaded already."""
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:  # not on Linux
        return dict(os.environ)
    pairs = (os.fsdecode(entry).split("=", 1) for entry in entries if b"=" in entry)
    return {name: value for name, value in pairs}


AT_START = environment_at_start()


def flags(reproducible: str) -> dict[str, str]:
    """The variables of a process that computes so; they win over the user's."""
    return FLAGS[reproducible] | THREADS | {MARK: reproducible}


def computes(reproducible: str | Literal[False]) -> bool:
    """Whether this process computes so. False asks for nothing."""
    return reproducible is False or flags(reproducible).items() <= AT_START.items()


@contextmanager
def for_new_processes(reproducible: str) -> Iterator[None]:
    """Processes started meanwhile compute so."""
    before = dict(os.environ)
    os.environ.update(flags(reproducible))
    try:
        yield
    finally:
        for name in flags(reproducible):
            os.environ.pop(name)
            if name in before:
                os.environ[name] = before[name]


def start(requested: object) -> None:
    """Restart this program if it requests another arithmetic, before it imports what computes.

    A shortcut for a value known from the command line or from the run to resume. Of a value from a configuration file,
    or one that differs between the jobs of a sweep, the app starts a process for the run.

    Args:
        requested: value of `reproducible`; whatever is not a key of FLAGS is ignored.
    """
    if (
        isinstance(requested, str)
        and requested in FLAGS
        and os.name == "posix"
        and AT_START.get(MARK) != requested
    ):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **flags(requested)})


def asked_for(words: Sequence[str]) -> str | None:
    """The last reproducible=… among the words of a command."""
    found = [word.removeprefix("reproducible=") for word in words if word.startswith("reproducible=")]
    return found[-1] if found else None


def switch_off() -> None:
    """Leave aside code that goes by the size of caches or by the processor's maker; once torch and DGL are loaded."""
    if os.environ.get(MARK) in FLAGS:
        import dgl
        import torch

        dgl.use_libxsmm(False)  # neighbour sums in blocks that fit a cache
        torch.backends.mkldnn.set_flags(False)  # oneDNN: bf16 products where a processor has them


def described() -> dict:
    """What decides the last digits of a run, beside its settings and versions."""
    import torch

    return {
        "processor": processor(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "flags": {name: AT_START[name] for name in DECIDING if AT_START.get(name)},
        "threads": 1,  # a fold's, always
    }


def holds_on(reproducible: str | Literal[False], processor: str) -> bool:
    """Whether the digits of a run are those of other machines, too. MKL hears of its AVX2 branch on Intel's processors only."""
    return reproducible == "any" or (reproducible == "avx2" and "intel" in processor.lower())


def in_words(arithmetic: dict) -> str:
    """What `described` found, as part of a sentence."""
    words = [arithmetic["capability"], *(f"{name}={value}" for name, value in arithmetic["flags"].items())]
    return f"{arithmetic['processor']} ({', '.join(words)})"


def processor() -> str:
    try:
        names = re.findall(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
