"""Searching over HTTP when a part of it fails."""

import pytest

from functions import search
from shared.platform.errors import DependencyError
from tests.fakes.models import HashingEmbedder
from tests.fakes.replaced import Replaced
from tests.unit.answering.world import world
from tests.unit.functions.http_app import IngestingClient, as_user, connect, make_app, settings_of_tests


async def test_without_the_embedder_passages_are_found_by_their_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services = await world(settings=settings_of_tests())

    async def failing(*_: object) -> None:
        raise DependencyError("The model is out of reach.")

    services.embedder = Replaced(HashingEmbedder(), embed=failing)
    connect(monkeypatch, services)
    app = make_app([search], IngestingClient(services))
    found = await as_user(app, "anna").post("/search", json={"query": "revenue"})
    assert found.status_code == 200
    assert "48 million" in found.text
