"""Keeps this process's memory and environment from other processes of the same user. Linux only.

Source: prctl(2), PR_SET_DUMPABLE; proc(5); capabilities(7); kernel/ptrace.c.
"""

import ctypes
import struct
import sys
from contextlib import suppress

_SET_DUMPABLE, _DROP_FROM_BOUNDING_SET = 4, 24  # prctl(2)
_CAPABILITY_VERSION = 0x20080522  # _LINUX_CAPABILITY_VERSION_3: two sets of 32 bits each
_MAX_CAPABILITIES = 64
_READ_ANY_FILE = 2  # CAP_DAC_READ_SEARCH


def hide_memory() -> None:
    """Have the kernel own this process's files in `/proc`, and write no core dumps.

    A debugger, or a profiler such as py-spy, then needs CAP_SYS_PTRACE. Programs that this process starts are
    not affected: execve(2) resets the flag.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def drop_capabilities() -> None:
    """Give up what root may do beyond its own files, CAP_SYS_PTRACE above all, for good.

    CAP_DAC_READ_SEARCH stays: in a container, root's packages may lie in another user's folders.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    for capability in range(_MAX_CAPABILITIES):
        if capability != _READ_ANY_FILE:
            libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)  # fails for any other user
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    sets = ctypes.create_string_buffer(24)
    with suppress(AttributeError):  # a C library without capget(2)
        if libc.capget(header, sets) != 0:
            return
        kept = 1 << _READ_ANY_FILE
        effective, permitted, *_ = struct.unpack("IIIIII", sets.raw)
        libc.capset(header, struct.pack("IIIIII", effective & kept, permitted & kept, 0, 0, 0, 0))
