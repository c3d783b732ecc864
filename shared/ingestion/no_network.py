"""Takes the network, and other processes' memory, from this process and all that it starts. Linux only.

A seccomp filter in classic BPF: it needs no rights, cannot be taken off again, and works in containers whose
own filter allows prctl(2), as Docker's does. Where it cannot be set, the process continues without it.
Source: seccomp(2); linux/filter.h, linux/seccomp.h, linux/audit.h; the tables of system calls.
"""

import ctypes
import errno
import platform
import struct
import sys

_NO_NEW_PRIVILEGES, _SET_SECCOMP, _MODE_FILTER = 38, 22, 2  # prctl(2)
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _DENY = 0x7FFF0000, 0x00050000 | errno.EACCES
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4  # in struct seccomp_data
_X32_NUMBERS = 0x40000000  # a second table of x86-64: refused as a whole
# machine -> its AUDIT_ARCH and the numbers of socket, ptrace, process_vm_readv, process_vm_writev,
# io_uring_setup, pidfd_getfd. Without socket(2) there is nothing to connect: no socket is inherited.
_REFUSED = {
    "x86_64": (0xC000003E, (41, 101, 310, 311, 425, 438)),
    "aarch64": (0xC00000B7, (198, 117, 270, 271, 425, 438)),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def close_network() -> bool:
    """Refuse new sockets with EACCES from now on; whether the kernel agreed."""
    known = _REFUSED.get(platform.machine())
    if sys.platform != "linux" or known is None:
        return False
    filter_bytes = _filter(*known)
    program = _Program(len(filter_bytes) // 8, filter_bytes)
    prctl = ctypes.CDLL(None).prctl
    one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
    if prctl(_NO_NEW_PRIVILEGES, one, none, none, none) != 0:
        return False
    refused: int = prctl(_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), ctypes.byref(program), none, none)
    return refused == 0


def _filter(architecture: int, numbers: tuple[int, ...]) -> bytes:
    last = len(numbers) + 5  # where _DENY stands; jumps count from the next instruction
    rows = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 0, last - 2, architecture),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_AT_LEAST, last - 4, 0, _X32_NUMBERS),
        *((_JUMP_EQUAL, last - 5 - at, 0, number) for at, number in enumerate(numbers)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _DENY),
    ]
    return b"".join(struct.pack("HBBI", *row) for row in rows)
