"""Makes the C library give freed memory back to the system.

By default glibc raises the sizes from which it maps memory apart, and from which it trims its heap, with the
largest piece that was ever freed. After one large prompt or file all others lie in the heap, between what
lives on, and the process keeps growing although Python holds no more than before.
"""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # parameters of mallopt(3)
_THRESHOLD_BYTES = 128 * 1024  # what glibc begins with; a value that is set is never raised
_ARENAS = 2  # heaps of threads; each of eight for a core would have gaps of its own


def keep_memory_low() -> None:
    """Fix the thresholds, for this process. Where the C library has none, nothing happens."""
    if sys.platform != "linux":
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_TRIM_THRESHOLD, _THRESHOLD_BYTES)
        set_option(_MMAP_THRESHOLD, _THRESHOLD_BYTES)
        set_option(_ARENA_MAX, _ARENAS)
