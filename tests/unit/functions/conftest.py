"""Fixtures for the documents API over HTTP, with fakes for all ports."""

from collections.abc import Callable

import httpx
import pytest
from starlette.types import ASGIApp

from shared.wiring import Services
from tests.contract.ingestion.models import DIMENSIONS, CountingChatModel, CountingEmbedder
from tests.fakes.services import fake_services
from tests.unit.functions.http_app import IngestingClient, as_user, connect, make_app, settings_of_tests

AsUser = Callable[..., httpx.AsyncClient]


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    fakes = fake_services(
        settings=settings_of_tests(max_document_bytes=200_000, embedding_dimensions=DIMENSIONS),
        chat_model=CountingChatModel(),
        embedder=CountingEmbedder(),
    )
    return connect(monkeypatch, fakes)


@pytest.fixture
def durable(services: Services) -> IngestingClient:
    return IngestingClient(services)


@pytest.fixture
def app(durable: IngestingClient) -> ASGIApp:
    return make_app(durable)


@pytest.fixture
def user(app: ASGIApp) -> AsUser:
    """Return a function that creates a client for a person, such as `user("anna", groups=[…])`."""

    def make(user_id: str, **claims: object) -> httpx.AsyncClient:
        return as_user(app, user_id, **claims)

    return make


@pytest.fixture
def anna(app: ASGIApp) -> httpx.AsyncClient:
    return as_user(app, "anna", groups=["engineering"])


@pytest.fixture
def ben(app: ASGIApp) -> httpx.AsyncClient:
    return as_user(app, "ben")
