"""Landlock restriction of this process and its children to certain paths. Requires Linux 5.13 or later.

Landlock needs no privileges and cannot be removed. A restricted process can't read the memory or environment
of outside processes, even as root, because `/proc` uses the same check as ptrace(2). From Linux 6.12 on, it
can't send signals to them either.
Source: landlock(7); linux/landlock.h; security/landlock/task.c.
"""

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress

# system call numbers, the same on all architectures
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38  # prctl(2)
_EXECUTE, _WRITE_FILE, _READ_FILE, _LIST_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_RIGHTS_OF_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_TRUNCATE, _DEVICE_CONTROL = 1 << 14, 1 << 15
_RIGHTS_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_CONTROL
_READ = _EXECUTE | _READ_FILE | _LIST_FOLDER
# Landlock scopes that block connections to abstract Unix sockets and signals to other processes.
_SCOPES = 0b11
_FIRST_WITH_SCOPES = 6


def landlock_version() -> int:
    """Return the kernel's Landlock ABI version; 0 if Landlock is missing or disabled."""
    if sys.platform != "linux":
        return 0
    version: int = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    return max(version, 0)


def restrict_files(readable: Iterable[str], listable: Iterable[str], writable: Iterable[str]) -> bool:
    """Restrict this process and its children to these paths. Folders in `listable` can be listed, but not
    read.

    Missing paths are ignored. Return whether the kernel applied the restriction.
    """
    version = landlock_version()
    if not version:
        return False
    handled = max(rights for since, rights in _RIGHTS_OF_VERSION.items() if since <= version)
    attributes = struct.pack("QQQ", handled, 0, _SCOPES if version >= _FIRST_WITH_SCOPES else 0)
    libc = _libc()
    ruleset = libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    try:
        for paths, rights in ((readable, _READ), (listable, _LIST_FOLDER), (writable, handled & ~_EXECUTE)):
            for path in paths:
                _allow(ruleset, path, rights)
        one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
        if libc.prctl(_NO_NEW_PRIVILEGES, one, none, none, none) != 0:
            return False
        status: int = libc.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0))
        return status == 0
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    with suppress(OSError):
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not stat.S_ISDIR(os.fstat(opened).st_mode):
                rights &= _RIGHTS_OF_FILES
            # struct landlock_path_beneath_attr is packed in linux/landlock.h.
            rule = struct.pack("=Qi", rights, opened)
            _libc().syscall(_ADD_RULE, ruleset, ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
        finally:
            os.close(opened)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
