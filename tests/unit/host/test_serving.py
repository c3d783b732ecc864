"""The listening socket."""

import socket

import pytest

from local.host.errors import PortBusyError
from local.host.serving import bind
from tests.conftest import find_free_port


def test_socket_names_its_protocol_so_that_asyncio_sends_small_answers_at_once() -> None:
    with bind(find_free_port()) as listener:
        assert listener.proto == socket.IPPROTO_TCP
        assert listener.getsockname()[0] == "127.0.0.1"


def test_busy_port_is_named_with_the_setting_to_change() -> None:
    with (
        bind(find_free_port()) as taken,
        pytest.raises(PortBusyError, match="--port or the setting LOCAL_HOST_PORT"),
    ):
        bind(taken.getsockname()[1])
