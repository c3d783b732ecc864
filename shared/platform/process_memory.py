"""Hardening of this process against other processes of the same user, which could read its memory. Linux
only.

Source: prctl(2), PR_SET_DUMPABLE; proc(5); capabilities(7); kernel/ptrace.c.
"""

import ctypes
import struct
import sys
from contextlib import suppress

_SET_DUMPABLE, _DROP_FROM_BOUNDING_SET = 4, 24  # PR_SET_DUMPABLE and PR_CAPBSET_DROP of prctl(2)
_CAPABILITY_VERSION = 0x20080522  # _LINUX_CAPABILITY_VERSION_3: two words of 32 bits per set
_MAX_CAPABILITIES = 64
_READ_ANY_FILE = 2  # number of CAP_DAC_READ_SEARCH, as in linux/capability.h


def hide_memory() -> None:
    """Prevent other processes of this user from reading this process's memory, and disable core dumps.

    Root becomes the owner of the process's `/proc` files, so debuggers and profilers such as py-spy need
    CAP_SYS_PTRACE. Child programs are not protected, because execve(2) resets the flag.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def drop_capabilities() -> None:
    """Permanently drop the capabilities of root, most importantly CAP_SYS_PTRACE.

    CAP_DAC_READ_SEARCH is kept: in a container, the app's packages may be in the folders of another user.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    for capability in range(_MAX_CAPABILITIES):
        if capability != _READ_ANY_FILE:
            # This call has no effect for users other than root.
            libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    sets = ctypes.create_string_buffer(24)
    with suppress(AttributeError):  # raised if the C library has no capget(2)
        if libc.capget(header, sets) != 0:
            return
        mask = 1 << _READ_ANY_FILE
        effective, permitted, *_ = struct.unpack("IIIIII", sets.raw)
        libc.capset(header, struct.pack("IIIIII", effective & mask, permitted & mask, 0, 0, 0, 0))
