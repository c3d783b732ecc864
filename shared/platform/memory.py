"""Makes the C library return freed memory to the system.

By default glibc raises its mmap and trim thresholds to the size of the largest freed block. After one large
prompt or file, later large blocks are placed in the heap between live ones, so the process keeps growing
although Python has freed the memory.
"""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # parameters of mallopt(3)
_THRESHOLD_BYTES = 128 * 1024  # glibc's initial value; once set explicitly it isn't raised
_ARENAS = 2  # of threads; glibc's default of eight per core would each be fragmented


def keep_memory_low() -> None:
    """Fix the thresholds for this process. Without glibc this does nothing."""
    if sys.platform != "linux":
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_TRIM_THRESHOLD, _THRESHOLD_BYTES)
        set_option(_MMAP_THRESHOLD, _THRESHOLD_BYTES)
        set_option(_ARENA_MAX, _ARENAS)
