"""Memory that a step lets go of is kept for the next one.

glibc gives the free end of its heap back to the system as soon as it is a few megabytes, and the system clears the same
pages anew for the next result: of an evaluation of Cuneiform that was a quarter of the time. Other allocators are let be.
"""

import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # numbers of malloc.h
KEPT = 2**29  # so much may lie free in a process
FROM_HEAP = 2**25  # what is larger is asked of the system each time; glibc takes no more than this


def keep_freed_memory() -> None:
    """From now on, in all of this process."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc, or on Windows
        return
    mallopt(MMAP_THRESHOLD, FROM_HEAP)
    mallopt(TRIM_THRESHOLD, KEPT)
