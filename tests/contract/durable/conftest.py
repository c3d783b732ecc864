"""Fixtures for one app per process, because get_functions may be called only once, and one server and store
per test.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.durable.app import make_functions
from tests.contract.durable.sdk_functions import SdkFunctions
from tests.contract.durable.server import DurableServer
from tests.contract.durable.stage import stage


@pytest.fixture(autouse=True)
def _strict_typing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enable strict typing, as the app does. Otherwise, the SDK warns, and warnings are errors in tests."""
    monkeypatch.setenv("AZURE_FUNCTIONS_DURABLE_STRICT_TYPING", "1")


@pytest.fixture(scope="session")
def functions() -> SdkFunctions:
    return make_functions()


@pytest.fixture
async def server(functions: SdkFunctions, tmp_path: Path) -> AsyncIterator[DurableServer]:
    stage.reset()
    async with DurableServer(functions, tmp_path / "durable.sqlite") as running:
        yield running
