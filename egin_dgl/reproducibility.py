"""CPU kernel selection: `reproducible=avx2|any` computes bitwise the same digits on different processors.

The numeric libraries choose kernels by the processor, and kernels round differently. Environment variables pin the
choice; most libraries read them once, at import, so the setting belongs to a process and not to a run. This module
imports nothing numeric: `restart_if_needed` must act before torch, numpy and DGL are loaded.
"""

import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from egin_dgl.errors import ConfigError

MARK = "EGIN_REPRODUCIBLE"  # inherited by child processes; read by `disable_cpu_specific_kernels`

# avx2: x86-64 processors with AVX2 and FMA (Intel since 2013, AMD since 2015). any: every x86-64 processor.
FLAGS = {
    "avx2": {
        "MKL_CBWR": "COMPATIBLE",  # of its branches, the only one that MKL guarantees on processors of every maker
        "ATEN_CPU_CAPABILITY": "avx2",  # kernels of torch
        "ONEDNN_MAX_CPU_ISA": "AVX2",  # convolutions of torch
        "OPENBLAS_CORETYPE": "Haswell",  # matrix products: of torch through `openblas`, of numpy, scipy and scikit-learn
        "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4",
        "GLIBC_TUNABLES": "",  # exp, log and pow of the C library: with FMA
    },
    "any": {
        "MKL_CBWR": "COMPATIBLE",
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OPENBLAS_CORETYPE": "Prescott",
        # Names of numpy before and since 2.4; unknown names are ignored.
        "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR "
        "X86_V3 X86_V4",
        # Names of glibc since 2.33 and before.
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable,-FMA4_Usable",
    },
}
CHOICES = (False, *FLAGS)
NEEDED = {"avx2": {"avx2", "fma"}, "any": set()}  # of the flags in /proc/cpuinfo
# One thread from the start: a sum split over threads is rounded differently.
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
RECORDED = (*FLAGS["any"], "LIBXSMM_TARGET", MARK)  # variables that affect digits, saved in run.json


def initial_environment() -> dict[str, str]:
    """Environment at the start of this process: a variable set later is not seen by libraries already loaded."""
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:  # not on Linux
        return dict(os.environ)
    return dict(os.fsdecode(entry).split("=", 1) for entry in entries if b"=" in entry)


INITIAL = initial_environment()


def flags(reproducible: str) -> dict[str, str]:
    """Environment variables of a process with this setting; they override the user's."""
    if not is_supported(reproducible):
        raise ConfigError(
            f"reproducible={reproducible} needs a processor with AVX2 and FMA; use reproducible=any"
        )
    return FLAGS[reproducible] | THREADS | {MARK: reproducible}


def is_active(reproducible: str | Literal[False]) -> bool:
    """Whether this process satisfies the setting; False needs nothing."""
    return reproducible is False or (
        reproducible in CHOICES[1:] and flags(reproducible).items() <= INITIAL.items()
    )


def is_supported(reproducible: str) -> bool:
    """Whether this processor has the instructions of the setting; assumed where the system does not list them."""
    found = read_cpuinfo("flags")
    return not found or NEEDED[reproducible] <= set(found.split())


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables inside the block, for processes started there; restore them afterwards."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def restart_if_needed(value: object) -> None:
    """Restart this program with the environment of `reproducible=value`, unless it has it already.

    A shortcut for the common case: a setting in a configuration file, or of one job of a sweep, gets a process of its
    own later (`training/parallel/processes.py`).
    """
    if not isinstance(value, str) or value not in FLAGS or not is_supported(value):
        return  # refused later, in one sentence
    if os.name == "posix" and INITIAL.get(MARK) != value:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **flags(value)})


def disable_cpu_specific_kernels() -> None:
    """Switch off kernels that depend on cache sizes or the processor's maker; call after importing torch, and again after importing DGL."""
    if (reproducible := os.environ.get(MARK)) in FLAGS:
        import torch

        if dgl := sys.modules.get("dgl"):
            dgl.use_libxsmm(False)  # neighbour sums in blocks that fit a cache
        torch.backends.mkldnn.set_flags(False)  # oneDNN: bf16 products where a processor has them
        if reproducible == "avx2":
            from egin_dgl.openblas import multiply_with_openblas

            multiply_with_openblas()


def describe_arithmetic() -> dict:
    """What decides the last digits of a run besides settings and versions, for run.json."""
    import torch

    return {
        "processor": processor_name(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "flags": {name: INITIAL[name] for name in RECORDED if INITIAL.get(name)},
        "threads": 1,  # per fold, always
    }


def format_arithmetic(arithmetic: dict) -> str:
    """One-line form of `describe_arithmetic`, e.g. `Intel Xeon (AVX512, MKL_CBWR=AVX2)`."""
    details = [arithmetic["capability"], *(f"{name}={value}" for name, value in arithmetic["flags"].items())]
    return f"{arithmetic['processor']} ({', '.join(details)})"


def processor_name() -> str:
    return read_cpuinfo("model name") or platform.processor() or platform.machine()


def read_cpuinfo(name: str) -> str:
    """An entry of the first processor; empty where the system has no /proc/cpuinfo."""
    try:
        entry = re.search(rf"^{name}\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        return ""
    return entry.group(1) if entry else ""
