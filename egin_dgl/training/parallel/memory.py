"""glibc keeps freed memory in the process instead of returning it to the system after every step.

By default glibc returns the free end of its heap as soon as it is a few megabytes, and the kernel clears the same pages
again for the next result, which took a quarter of an evaluation of Cuneiform. Other allocators are left alone.
"""

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # constants of malloc.h
TRIM_BYTES = 2**29  # free heap that a process may hold
MMAP_BYTES = 2**25  # larger blocks come from mmap; the maximum that glibc accepts


def keep_freed_memory() -> None:
    """Set glibc's thresholds for this process."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc, or Windows
        return
    mallopt(M_MMAP_THRESHOLD, MMAP_BYTES)
    mallopt(M_TRIM_THRESHOLD, TRIM_BYTES)
