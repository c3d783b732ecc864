"""Settings for every suite: shared servers, timeouts for tests that start a whole stack, and the order of
files.
"""

import gc
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from shared.ingestion.parser_process import parsers
from shared.platform import calls, connections
from tests import shared_servers
from tests.free_ports import free_port
from tests.servers import azurite, model_server, search_server

__all__ = ["azurite", "free_port", "model_server", "search_server"]

# Folders without end-to-end tests, which `make e2e` doesn't collect.
_QUICK_ONLY = ("tests/unit", "tests/infra")
PATIENCE_S = 600.0  # per test, including the start of a stack; detects only hangs
# Packages whose fixtures take longer than their tests, so that a single worker runs all files of a package.
_TOGETHER = ("tests/e2e/access", "tests/e2e/teams", "tests/contract/api")
# The order of `make e2e`. First come tests without the fixture `stack`, because an idle stack takes 4 % of a
# core. The slowest files follow, so that no worker is left with a slow file at the end.
_FIRST = (
    "tests/e2e/test_ingestion_crashes.py",
    "tests/e2e/access/",
    "tests/contract/worker/",
    "tests/e2e/test_stack_crashes.py",
    "tests/e2e/test_kills.py",
    "tests/contract/",
    "tests/e2e/teams/",
    "tests/e2e/web/test_conversations.py",
    "tests/e2e/web/test_journeys.py",
    "tests/e2e/sub_agents/",
    "tests/e2e/web/test_accessibility.py",
    "tests/e2e/web/test_reloads.py",
    "tests/e2e/test_ingestion_costs.py",
    "tests/e2e/web/test_conversation_files.py",
    "tests/e2e/test_clarification.py",
    "tests/e2e/test_limits.py",
    "tests/e2e/test_documented_commands.py",
    "tests/e2e/web/test_document_list.py",
    "tests/e2e/test_traces.py",
    "tests/e2e/test_stack.py",
    "tests/e2e/web/test_security.py",
    "tests/e2e/test_app_service_identity.py",
)


@pytest.fixture(scope="session", autouse=True)
def quick_retries() -> Iterator[None]:
    """Shorten the pauses between retries to milliseconds, so that no test waits for a backoff."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "FIRST_WAIT_S", 0.01)
        patch.setattr(calls, "DEFAULT_PAUSE_S", 0.02)
        quick_blobs = {"initial_backoff": 0.01, "increment_base": 0, "random_jitter_range": 0}
        for name, value in quick_blobs.items():
            patch.setitem(connections.BLOB_RETRIES, name, value)
        patch.setitem(connections.TABLE_RETRIES, "retry_backoff_factor", 0.005)
        yield


@pytest.fixture(scope="session", autouse=True)
def parsers_end() -> Iterator[None]:
    """Stop the parser processes that tests started from this process."""
    yield
    parsers(2048).close()


def pytest_configure(config: pytest.Config) -> None:
    """Create the folder of this run's shared servers, unless this process is a worker."""
    if not hasattr(config, "workerinput"):
        # `pytest_unconfigure` then runs on SIGTERM as well.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        shared_servers.begin_run()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the shared servers after the last worker has ended."""
    if not hasattr(config, "workerinput"):
        shared_servers.end_run()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the folders of quick tests if only end-to-end tests run: collecting them takes seconds."""
    if not config.getoption("markexpr").startswith("e2e"):
        return None
    return any(collection_path == config.rootpath / folder for folder in _QUICK_ONLY) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Pause the garbage collector during collection, because it would take a fifth of the time and free
    nothing.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every end-to-end test a timeout of at least PATIENCE_S, because CI may be ten times slower than a
    developer's machine.
    """
    items.sort(key=lambda item: _rank_of(item.nodeid))
    for item in items:
        marker = item.get_closest_marker("timeout")
        if not item.get_closest_marker("e2e"):
            continue
        if item.nodeid.startswith(_QUICK_ONLY) and not item.get_closest_marker("nightly"):
            raise pytest.UsageError(f"{item.nodeid}: `make e2e` doesn't collect this folder")
        if marker is None or marker.args[0] < PATIENCE_S:
            item.add_marker(pytest.mark.timeout(PATIENCE_S), append=False)


class _ByUnit(LoadFileScheduling):  # type: ignore[misc]  # it ships no types
    """A scheduler that gives all tests of a file, or of some packages, to the same worker."""

    def _split_scope(self, nodeid: str) -> str:
        return _unit_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling | None:
    """Return the scheduler for `--dist loadfile`. With `--no-loadscope-reorder` it keeps the order of
    collection.
    """
    return _ByUnit(config, log) if config.getoption("dist") == "loadfile" else None


def _rank_of(nodeid: str) -> int:
    """Return the place of a test's file or folder in the order of `make e2e`."""
    return next((rank for rank, begin in enumerate(_FIRST) if nodeid.startswith(begin)), len(_FIRST))


def _unit_of(nodeid: str) -> str:
    """Return the tests that must share a worker with this one: its file or its package."""
    file = nodeid.partition("::")[0]
    return next((package for package in _TOGETHER if file.startswith(f"{package}/")), file)
