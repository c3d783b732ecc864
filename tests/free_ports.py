"""Free loopback ports for the servers that tests start."""

import itertools
import os
import socket
from collections.abc import Callable, Iterator

import pytest

_LOWEST_PORT = 12_000
_PORTS_PER_WORKER = 2_500


def find_free_port() -> int:
    """Return a free loopback port, which no other call in this test run returns.

    The port is below the ephemeral range, and in a range that only this worker uses, because a server may
    open it only seconds later, and reopen it after a crash.
    """
    return next(_free_ports)


@pytest.fixture
def free_port() -> Callable[[], int]:
    return find_free_port


def _find_ports() -> Iterator[int]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
    first = _LOWEST_PORT + worker * _PORTS_PER_WORKER
    # Concurrent test runs start at different offsets.
    for number in itertools.count(os.getpid() * 31):
        port = first + number % _PORTS_PER_WORKER
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        yield port


_free_ports = _find_ports()
