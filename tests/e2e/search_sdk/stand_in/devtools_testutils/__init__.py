"""A replacement of Microsoft's test tools for their live tests, with the local server as the live service.

Settings arrive as SEARCH_SERVICE_ENDPOINT and SEARCH_SERVICE_KEY. Nothing is recorded, nothing is sanitised.
"""

import functools
import inspect
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from azure.core.credentials import AzureKeyCredential


class AzureTestError(Exception):
    """A fixture could not be set up."""


class AzureRecordedTestCase:
    is_live = True

    def get_resource_name(self, prefix: str) -> str:
        return prefix


class EnvironmentVariableLoader:
    """A decorator that passes settings to the test, from the environment or the test itself."""

    def __init__(self, directory: str, **settings: str) -> None:
        self._settings = {name: os.environ.get(name.upper(), default) for name, default in settings.items()}

    def __call__(self, test: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(test):

            async def run_async(case: object) -> None:
                await test(case, **self._wanted_by(test))

            return _named_like(test, run_async)

        def run(case: object) -> None:
            test(case, **self._wanted_by(test))

        return _named_like(test, run)

    def _wanted_by(self, test: Callable[..., Any]) -> dict[str, str]:
        parameters = inspect.signature(test).parameters
        takes_all = hasattr(test, "__wrapped__") and test.__code__.co_varnames[:2] == ("args", "kwargs")
        return {name: value for name, value in self._settings.items() if takes_all or name in parameters}


def _named_like(test: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    functools.update_wrapper(run, test)
    # Without this pytest would read the test's own signature and look for fixtures of those names.
    del run.__dict__["__wrapped__"]
    return run


def get_credential(is_async: bool = False) -> AzureKeyCredential:
    return AzureKeyCredential(os.environ["SEARCH_SERVICE_KEY"])


def recorded_by_proxy(test: Callable[..., Any]) -> Callable[..., Any]:
    return test


def remove_batch_sanitizers(names: list[str]) -> None:
    pass


@pytest.fixture(scope="session")
def test_proxy() -> None:
    """Remove the waits for the cloud's indexing lag, because local writes are searchable at once."""
    time.sleep = lambda seconds: None
