"""Fixtures for the real clients and stand-ins for their services."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from shared.ingestion import docling, document_intelligence
from shared.ingestion.docling import Docling
from shared.ingestion.document_intelligence import DocumentIntelligence
from shared.platform.language_models.models import CallLimits
from shared.wiring import Connections
from tests.contract.parser_backends.answers import DOCLING, LAYOUT, read_result
from tests.contract.parser_backends.servers import KEY, DoclingStandIn, DocumentIntelligenceStandIn, StandIn
from tests.fakes.services import fake_settings

LIMITS = CallLimits(timeout_s=60, max_retries=2)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docling, "_POLL_S", 0.01)
    monkeypatch.setattr(document_intelligence, "_POLL_S", 0.01)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "document"
    path.write_bytes(b"%PDF-1.7 " + b"x" * 200_000)
    return path


@dataclass(frozen=True)
class Backend:
    """A client, the stand-in for its service, and the path of its first request."""

    client: DocumentIntelligence | Docling
    server: StandIn
    submit_path: str
    variable: str


@pytest.fixture
async def intelligence() -> AsyncIterator[Backend]:
    async with DocumentIntelligenceStandIn(layout=LAYOUT, read=read_result("One", "Two")) as server:
        settings = fake_settings(
            document_intelligence_endpoint=server.endpoint, document_intelligence_key=KEY
        )
        to = Connections(settings)
        path = "/documentintelligence/documentModels/prebuilt-layout:analyze"
        client = DocumentIntelligence(to.document_intelligence)
        yield Backend(client, server, path, "DOCUMENT_INTELLIGENCE")
        await to.close()


@pytest.fixture
async def docling_serve() -> AsyncIterator[Backend]:
    async with DoclingStandIn(DOCLING) as server:
        to = Connections(fake_settings(docling_endpoint=server.endpoint, docling_api_key=KEY))
        yield Backend(Docling(to.docling), server, "/v1/convert/file/async", "DOCLING")
        await to.close()


@pytest.fixture(params=["intelligence", "docling_serve"])
def backend(request: pytest.FixtureRequest) -> Backend:
    instance: Backend = request.getfixturevalue(request.param)
    return instance
