"""The local search and model servers for tests: import the fixtures `search_server` and `model_server`.

Real processes on free ports, one of each per test process, however many conftests import the fixtures. Tests
that share them use index names of their own (`unique_index`).
"""

import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.conftest import find_free_port

START_TIMEOUT_S = 90.0  # 1-3 s on an idle machine; two cores shared with much else take far longer
STOP_TIMEOUT_S = 10.0
SEARCH_KEY = "local-search-key"
MODEL_KEY = "local-model-key"
MODEL_TOKEN = "a-token-of-the-directory"
_counter = itertools.count()


@dataclass(frozen=True)
class SearchServer:
    """Where the search server listens."""

    endpoint: str
    api_key: str


@dataclass(frozen=True)
class ModelServer:
    """Where the model server listens, and what it serves: MiniLM, or hashing where the weights are absent."""

    base_url: str
    api_key: str
    chat_model: str
    embedding_model: str

    @property
    def embedding_dimensions(self) -> int:
        return 384 if "MiniLM" in self.embedding_model else 1024


class ServerProcess:
    """`python -m MODULE --port PORT …`, its output in a file; a context manager that ends it."""

    def __init__(self, module: str, arguments: Sequence[str] = ()) -> None:
        self.port = find_free_port()
        self.folder = tempfile.TemporaryDirectory(prefix=f"{module}-", ignore_cleanup_errors=True)
        self._log_path = Path(self.folder.name) / "output.log"
        command = [sys.executable, "-m", module, "--port", str(self.port)]
        command += [argument.format(folder=self.folder.name) for argument in arguments]
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait_until_ready(self) -> None:
        """Until the port takes connections; the servers open it when everything is loaded."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                output = self._log_path.read_text(errors="replace")[-3000:]
                raise RuntimeError(f"{self._process.args!r} did not start:\n{output}")
            time.sleep(0.05)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.folder.cleanup()

    def _answers(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1.0)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class _Shared:
    """Started for the first user, stopped after the last."""

    def __init__(self, module: str, arguments: Sequence[str] = ()) -> None:
        self._module = module
        self._arguments = arguments
        self._server: ServerProcess | None = None
        self._users = 0

    def acquire(self) -> int:
        """The port."""
        if self._server is None:
            server = ServerProcess(self._module, self._arguments)
            try:
                server.wait_until_ready()
            except BaseException:
                server.stop()
                raise
            self._server = server
        self._users += 1
        return self._server.port

    def release(self) -> None:
        self._users -= 1
        if self._users == 0 and self._server is not None:
            self._server.stop()
            self._server = None


_search = _Shared("local.search_server", ("--data", "{folder}/indexes", "--key", SEARCH_KEY))
_model = _Shared("tests.endpoint_kinds", ("--key", MODEL_KEY, "--token", MODEL_TOKEN))


@pytest.fixture(scope="session")
def search_server() -> Iterator[SearchServer]:
    """A running search server with no indexes."""
    yield SearchServer(endpoint=f"http://127.0.0.1:{_search.acquire()}", api_key=SEARCH_KEY)
    _search.release()


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    """A running model server; faults, speeds and kinds of endpoint are asked for in the model's name."""
    address = f"http://127.0.0.1:{_model.acquire()}"
    served = httpx.get(f"{address}/health", timeout=START_TIMEOUT_S).json()
    yield ModelServer(f"{address}/v1", MODEL_KEY, served["chat_model"], served["embedding_model"])
    _model.release()


def unique_index(stem: str) -> str:
    """An index name that no other test of this run uses."""
    return f"{stem}-{os.getpid()}-{next(_counter)}"
