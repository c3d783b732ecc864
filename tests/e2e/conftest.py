"""Fixtures for tests that start real processes."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from local.run_all.stack import LocalStack
from samples.acl import ANNA, BEN
from shared.wiring import Services
from tests.e2e.stack_client import client_of
from tests.e2e.stack_fixture import stack
from tests.e2e.stack_services import services_of

__all__ = ["stack"]


@pytest.fixture
def anna(stack: LocalStack) -> Iterator[httpx.Client]:
    with client_of(stack, ANNA) as client:
        yield client


@pytest.fixture
def ben(stack: LocalStack) -> Iterator[httpx.Client]:
    with client_of(stack, BEN) as client:
        yield client


@pytest.fixture
async def services(stack: LocalStack) -> AsyncIterator[Services]:
    """Yield the app's own services over the stack's servers."""
    async with services_of(stack) as services:
        yield services
