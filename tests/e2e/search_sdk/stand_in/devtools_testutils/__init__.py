"""A replacement for Microsoft's test utilities, which makes their live tests use the local server.

It reads the settings SEARCH_SERVICE_ENDPOINT and SEARCH_SERVICE_KEY. Requests are not recorded or sanitised.
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
    """Error raised if a fixture could not be set up."""


class AzureRecordedTestCase:
    is_live = True

    def get_resource_name(self, prefix: str) -> str:
        return prefix


class EnvironmentVariableLoader:
    """A decorator that passes settings to a test, from the environment or its own arguments."""

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
    # Without this line, pytest would read the signature of the wrapped test and look for fixtures with the
    # names of its parameters.
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
    """Remove the pauses for the indexing delay of the cloud service; the local server makes writes searchable
    at once.
    """
    time.sleep = lambda seconds: None
