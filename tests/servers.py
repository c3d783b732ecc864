"""Fixtures for the servers that tests share: Azurite, the local search server, a model server.

They are real processes on free ports, one of each kind per test run. Tests that share a server get unique
names for their data from `unique_name`.
"""

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from local.azurite.server import AzuriteServer, connection_string, start_azurite
from local.child_process import ChildProcess, start_child, tail
from tests.free_ports import find_free_port
from tests.shared_servers import accepts_connections, ports_of

START_TIMEOUT_S = 90.0  # servers start in 1 to 3 s, but take much longer on a busy machine
ROOT = Path(__file__).resolve().parents[1]
SEARCH_KEY = "local-search-key"
MODEL_KEY = "local-model-key"
MODEL_TOKEN = "a-token-of-the-directory"
_counter = itertools.count()


@dataclass(frozen=True)
class Azurite:
    """The ports of the storage emulator."""

    blob_port: int
    queue_port: int
    table_port: int

    @property
    def connection_string(self) -> str:
        return connection_string(self.blob_port, self.queue_port, self.table_port)


@dataclass(frozen=True)
class SearchServer:
    """The URL and key of the search server."""

    endpoint: str
    api_key: str


@dataclass(frozen=True)
class ModelServer:
    """The URL and key of the model server, and its models. The embedding model is MiniLM, or hashing if its
    weights are missing.
    """

    base_url: str
    api_key: str
    chat_model: str
    embedding_model: str

    @property
    def embedding_dimensions(self) -> int:
        return 384 if "MiniLM" in self.embedding_model else 1024


@pytest.fixture(scope="session")
def azurite() -> Azurite:
    """Return a running storage emulator."""
    return Azurite(*ports_of("azurite", _start_azurite))


@contextmanager
def own_azurite() -> Iterator[Azurite]:
    """Start a separate emulator, for tests that inspect everything that it stores."""
    with (
        tempfile.TemporaryDirectory(prefix="azurite-", ignore_cleanup_errors=True) as folder,
        _azurite_in(Path(folder)) as server,
    ):
        yield Azurite(server.blob_port, server.queue_port, server.table_port)


@pytest.fixture(scope="session")
def search_server() -> SearchServer:
    """Return a running search server. It includes operations that only its contract tests use."""
    (port,) = ports_of("search", _start_search)
    return SearchServer(f"http://127.0.0.1:{port}", SEARCH_KEY)


@pytest.fixture(scope="session")
def model_server() -> ModelServer:
    """Return a running model server. Tests request faults, delays and kinds of endpoint in the model name."""
    (port,) = ports_of("model", _start_model)
    address = f"http://127.0.0.1:{port}"
    health = httpx.get(f"{address}/health", timeout=START_TIMEOUT_S).json()
    return ModelServer(f"{address}/v1", MODEL_KEY, health["chat_model"], health["embedding_model"])


def unique_name(stem: str) -> str:
    """Return a name for a container, queue or index that no other test of this run uses."""
    return f"{stem}-{os.getpid()}-{next(_counter)}"


def start_server(module: str, folder: Path, arguments: Sequence[str]) -> tuple[ChildProcess, list[int]]:
    """Start `python -m MODULE --port PORT ...` and return once it accepts connections.

    Raises:
        RuntimeError: The server exited, or did not open its port within `START_TIMEOUT_S`.
    """
    port = find_free_port()
    command = [sys.executable, "-m", module, "--port", str(port), *arguments]
    process = start_child(module, command, folder / "output.log", os.environ, folder=ROOT)
    deadline = time.monotonic() + START_TIMEOUT_S
    while not accepts_connections(port):
        if not process.is_running() or time.monotonic() > deadline:
            process.kill()
            raise RuntimeError(f"{module} did not start:\n{tail(process.log_path)}")
        time.sleep(0.05)
    return process, [port]


def _start_azurite(folder: Path) -> tuple[ChildProcess, list[int]]:
    server = _azurite_in(folder)
    return server.process, [server.blob_port, server.queue_port, server.table_port]


def _azurite_in(folder: Path) -> AzuriteServer:
    return start_azurite(folder, *(find_free_port() for _ in range(3)))


def _start_search(folder: Path) -> tuple[ChildProcess, list[int]]:
    arguments = ("--data", str(folder / "indexes"), "--key", SEARCH_KEY)
    return start_server("tests.search_operations", folder, arguments)


def _start_model(folder: Path) -> tuple[ChildProcess, list[int]]:
    return start_server("tests.endpoint_kinds", folder, ("--key", MODEL_KEY, "--token", MODEL_TOKEN))
