"""Protects this process's memory and environment from other processes of the same user. Linux only.

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
    """Make root the owner of this process's `/proc` files and disable core dumps.

    Debuggers and profilers such as py-spy then need CAP_SYS_PTRACE. Child programs are unaffected: execve(2)
    resets the flag.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def drop_capabilities() -> None:
    """Permanently drop root's capabilities, above all CAP_SYS_PTRACE.

    CAP_DAC_READ_SEARCH is kept: in a container, root's packages may be in another user's folders.
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
        mask = 1 << _READ_ANY_FILE
        effective, permitted, *_ = struct.unpack("IIIIII", sets.raw)
        libc.capset(header, struct.pack("IIIIII", effective & mask, permitted & mask, 0, 0, 0, 0))
