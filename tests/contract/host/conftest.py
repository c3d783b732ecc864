"""Fixtures for one running host with the sample app, shared by all tests of this folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.host.host_process import HostProcess
from tests.free_ports import find_free_port
from tests.servers import Azurite, unique_name


def sample_settings(storage: str) -> dict[str, str]:
    """Return settings for the sample app, with containers and queues that no other host uses."""
    stem = unique_name("host")
    return {
        "AzureWebJobsStorage": storage,
        "DocumentsStorage": storage,
        "DOCUMENTS": f"{stem}-documents",
        "INBOX": f"{stem}-inbox",
        "LOCAL_BLOB_DELETED_QUEUE": f"{stem}-deleted",
    }


@pytest.fixture(scope="session")
def settings(azurite: Azurite) -> dict[str, str]:
    return sample_settings(azurite.connection_string)


@pytest.fixture(scope="session")
def host(settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    with HostProcess(tmp_path_factory.mktemp("host"), find_free_port(), settings) as running:
        yield running


@pytest.fixture
def new_host(azurite: Azurite, tmp_path: Path) -> Callable[..., HostProcess]:
    """Return a function that creates a host with separate settings, which the test starts and stops."""

    def make(**changes: str) -> HostProcess:
        changed = {**sample_settings(azurite.connection_string), **changes}
        return HostProcess(tmp_path / "host", find_free_port(), changed)

    return make
