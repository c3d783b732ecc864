"""A server of its own for these tests."""

from collections.abc import Iterator

import pytest

from tests.conftest import find_free_port
from tests.contract.search_server.server_process import SearchServerProcess


@pytest.fixture(scope="module")
def search_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchServerProcess]:
    server = SearchServerProcess(find_free_port(), tmp_path_factory.mktemp("search"))
    server.start()
    yield server
    server.stop()
