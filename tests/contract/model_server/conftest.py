"""Fixtures for one model server in a separate process, called by the real openai clients."""

import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from openai import AsyncOpenAI

from tests.free_ports import find_free_port

KEY = "local-model-key"
CHAT = "groundwork-extractive"
EMBEDDING = "all-MiniLM-L6-v2"
TIMEOUT_S = 120.0  # a limit for hanging processes, long enough for a busy machine

OpenClient = Callable[..., AsyncOpenAI]


def start_server(port: int, *arguments: str) -> subprocess.Popen[str]:
    """Start `python -m local.model_server` on that port."""
    command = [sys.executable, "-m", "local.model_server", "--port", str(port), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stop_server(process: subprocess.Popen[str]) -> int:
    """Stop the process with SIGTERM and return its exit status. Kill it if it ignores the signal."""
    process.terminate()
    try:
        process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    return process.returncode


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Yield the URL of a server that requires KEY."""
    port = find_free_port()
    process = start_server(port, "--key", KEY)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("model server:")
    yield f"http://127.0.0.1:{port}"
    stop_server(process)


@pytest.fixture
async def open_client(address: str) -> AsyncIterator[OpenClient]:
    """Yield a function that creates clients, by default without retries; settings may be overridden."""
    opened: list[AsyncOpenAI] = []

    def make(**settings: object) -> AsyncOpenAI:
        values = {
            "base_url": f"{address}/v1",
            "api_key": KEY,
            "timeout": TIMEOUT_S,
            "max_retries": 0,
        } | settings
        opened.append(AsyncOpenAI(**values))  # type: ignore[arg-type]
        return opened[-1]

    yield make
    for client in opened:
        await client.close()


@pytest.fixture
def client(open_client: OpenClient) -> AsyncOpenAI:
    return open_client()


def elapsed_s(since: float) -> float:
    """Return the seconds since a value of time.monotonic()."""
    return time.monotonic() - since
