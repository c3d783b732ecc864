"""Tuning of the C memory allocator, so that freed memory is returned to the operating system.

By default, glibc raises its mmap and trim thresholds to the size of the largest block freed so far. After one
large prompt or file, further large blocks are allocated on the heap between live ones, so the process keeps
growing although Python has freed the memory.
"""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # parameter numbers of mallopt(3)
_THRESHOLD_BYTES = 128 * 1024  # glibc's initial value; glibc doesn't raise an explicit value
_ARENAS = 2  # number of heaps for all threads; the default of eight per core would fragment memory


def keep_memory_low() -> None:
    """Fix glibc's allocator thresholds for this process. Without glibc this has no effect."""
    if sys.platform != "linux":
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_TRIM_THRESHOLD, _THRESHOLD_BYTES)
        set_option(_MMAP_THRESHOLD, _THRESHOLD_BYTES)
        set_option(_ARENA_MAX, _ARENAS)
