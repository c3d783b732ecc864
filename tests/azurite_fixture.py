"""A session-scoped Azurite for tests: `from tests.azurite_fixture import azurite` in a conftest.py.

One per test process, however many conftests import the fixture; its data lies in a temporary folder. Tests
that share it must use container and queue names of their own (`unique_name`).
"""

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.azurite.server import AzuriteServer, start_azurite
from tests.conftest import find_free_port

_counter = itertools.count()


class _SharedAzurite:
    """Started by the first user, stopped after the last."""

    def __init__(self) -> None:
        self._server: AzuriteServer | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._users = 0

    def acquire(self) -> AzuriteServer:
        if self._server is None:
            self._folder = tempfile.TemporaryDirectory(prefix="azurite-", ignore_cleanup_errors=True)
            ports = [find_free_port() for _ in range(3)]
            self._server = start_azurite(Path(self._folder.name), *ports)
        self._users += 1
        return self._server

    def release(self) -> None:
        self._users -= 1
        if self._users == 0 and self._server is not None and self._folder is not None:
            self._server.process.stop()
            self._folder.cleanup()
            self._server = None


_shared = _SharedAzurite()


@pytest.fixture(scope="session")
def azurite() -> Iterator[AzuriteServer]:
    """A running storage emulator; `azurite.connection_string` opens it."""
    yield _shared.acquire()
    _shared.release()


@contextmanager
def own_azurite() -> Iterator[AzuriteServer]:
    """One for a test that looks at everything that is stored."""
    server = _SharedAzurite()
    yield server.acquire()
    server.release()


def unique_name(stem: str) -> str:
    """A container or queue name that no other test of this run uses."""
    return f"{stem}-{os.getpid()}-{next(_counter)}"
