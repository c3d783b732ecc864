"""Seccomp filter that blocks system calls reaching the network or other processes. Linux only.

The filter is classic BPF. It needs no privileges, cannot be removed, is inherited by children, and works in
containers whose filter allows prctl(2), such as Docker. It sees system call numbers and arguments but no
paths, so it cannot block access to `/proc`; `landlock` and `process_memory` do that.
Source: seccomp(2); linux/filter.h, linux/seccomp.h, linux/audit.h; the kernel's tables of system calls.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_NO_NEW_PRIVILEGES, _SET_SECCOMP, _MODE_FILTER = 38, 22, 2  # prctl(2)
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _DENY = 0x7FFF0000, 0x00050000 | errno.EACCES
# Offsets in struct seccomp_data.
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
# The x32 system calls on x86-64 start at this number. All of them are blocked.
_X32_NUMBERS = 0x40000000
# F_SETOWN, F_SETSIG and F_SETOWN_EX, fcntl commands that make the kernel send signals.
_SIGNAL_COMMANDS = (8, 10, 15)

# struct sock_filter: code, jump offset if true, jump offset if false, operand.
_Row = tuple[int, int, int, int]


@dataclass(frozen=True)
class _Table:
    """Numbers of the blocked system calls on one architecture.

    Attributes:
        refused: system calls that are always blocked. No socket is inherited, so blocking socket(2) prevents
            all connections.
        to_self: kill and tgkill, allowed only for this process, because abort(3) uses them.
        limits: prlimit64, which getrlimit(2) uses; allowed only for this process.
    """

    architecture: int
    refused: tuple[int, ...]
    to_self: tuple[int, ...]
    limits: int
    fcntl: int


# socket, ptrace, process_vm_readv, process_vm_writev, io_uring_setup, pidfd_getfd, pidfd_open,
# pidfd_send_signal, process_madvise, process_mrelease, tkill, rt_sigqueueinfo, rt_tgsigqueueinfo, kcmp,
# perf_event_open, bpf, keyctl, unshare, setns, setpriority, ioprio_set, sched_setparam, sched_setscheduler,
# sched_setaffinity, sched_setattr, migrate_pages, move_pages
_TABLES = {
    "x86_64": _Table(
        0xC000003E,
        (
            41, 101, 310, 311, 425, 438, 434, 424, 440, 448, 200, 129, 297, 312, 298, 321, 250, 272, 308, 141,
            251, 142, 144, 203, 314, 256, 279,
        ),
        to_self=(62, 234),
        limits=302,
        fcntl=72,
    ),
    "aarch64": _Table(
        0xC00000B7,
        (
            198, 117, 270, 271, 425, 438, 434, 424, 440, 448, 130, 138, 240, 272, 241, 280, 219, 97, 268, 140,
            30, 118, 119, 122, 274, 238, 239,
        ),
        to_self=(129, 131),
        limits=261,
        fcntl=25,
    ),
}  # fmt: skip


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refuse_system_calls() -> bool:
    """Make system calls fail with EACCES that open sockets, or that access or signal other processes.

    Return whether the kernel installed the filter.
    """
    table = _TABLES.get(platform.machine())
    if sys.platform != "linux" or table is None:
        return False
    rows = b"".join(struct.pack("HBBI", *row) for row in _filter(table, os.getpid()))
    program = _Program(len(rows) // 8, rows)
    prctl = ctypes.CDLL(None).prctl
    one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
    if prctl(_NO_NEW_PRIVILEGES, one, none, none, none) != 0:
        return False
    status: int = prctl(_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), ctypes.byref(program), none, none)
    return status == 0


def _filter(table: _Table, process_id: int) -> Iterator[_Row]:
    yield _LOAD, 0, 0, _ARCHITECTURE_AT
    yield _JUMP_EQUAL, 1, 0, table.architecture
    yield _RETURN, 0, 0, _DENY
    yield _LOAD, 0, 0, _NUMBER_AT
    yield _JUMP_AT_LEAST, 0, 1, _X32_NUMBERS
    yield _RETURN, 0, 0, _DENY
    for number in table.refused:
        yield _JUMP_EQUAL, 0, 1, number
        yield _RETURN, 0, 0, _DENY
    for number in table.to_self:
        yield from _by_argument(number, 0, (process_id,), _ALLOW, _DENY)
    yield from _by_argument(table.limits, 0, (0, process_id), _ALLOW, _DENY)
    yield from _by_argument(table.fcntl, 1, _SIGNAL_COMMANDS, _DENY, _ALLOW)
    yield _RETURN, 0, 0, _ALLOW


def _by_argument(
    number: int, argument: int, values: Sequence[int], verdict: int, other: int
) -> Iterator[_Row]:
    """Yield filter rows that return `verdict` if an argument of this system call, a C int, is one of
    `values`, and `other` otherwise.
    """
    yield _JUMP_EQUAL, 0, len(values) + 3, number
    # Load the low half of the argument. It comes first, because both architectures are little-endian.
    yield _LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument
    for position, value in enumerate(values):
        yield _JUMP_EQUAL, len(values) - position, 0, value
    yield _RETURN, 0, 0, other
    yield _RETURN, 0, 0, verdict
