"""What every suite shares: free ports, and patience for tests that start a whole stack."""

import itertools
import os
import socket
from collections.abc import Callable, Iterator

import pytest

PATIENCE_S = 600.0  # of a test, with the stack that it may be the first to start; a hang guard, nothing more
_LOWEST_PORT = 12_000
_PORTS_OF_A_WORKER = 2_500


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """No end-to-end test has less than PATIENCE_S: CI may be ten times slower than this machine."""
    for item in items:
        marker = item.get_closest_marker("timeout")
        if item.get_closest_marker("e2e") and (marker is None or marker.args[0] < PATIENCE_S):
            item.add_marker(pytest.mark.timeout(PATIENCE_S), append=False)


def find_free_port() -> int:
    """A loopback port that nothing listens on, and that nobody else is given until it is used.

    Below the range from which a system chooses ports by itself, and never one of another worker's: what is
    found now is opened seconds later, and after a crash anew, by a process that must have this very port.
    """
    return next(_free_ports)


def _find_ports() -> Iterator[int]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
    first = _LOWEST_PORT + worker * _PORTS_OF_A_WORKER
    # Suites that run side by side begin at different places.
    for number in itertools.count(os.getpid() * 31):
        port = first + number % _PORTS_OF_A_WORKER
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        yield port


_free_ports = _find_ports()


@pytest.fixture
def free_port() -> Callable[[], int]:
    return find_free_port
