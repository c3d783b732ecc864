"""Fixtures that every suite shares: free ports."""

import socket
from collections.abc import Callable

import pytest


def find_free_port() -> int:
    """A loopback port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def free_port() -> Callable[[], int]:
    return find_free_port
