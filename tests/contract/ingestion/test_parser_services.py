"""Parser services in ingestion: their results reach the index, and their failures don't stop it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from shared.ingestion import docling, document_intelligence
from shared.ingestion.parsers.tesseract import is_installed
from shared.platform.names import DOCUMENTS
from shared.platform.search import IndexRow
from shared.wiring import Services, build_services
from tests.contract.ingestion.driving import blocks_of, documents_of, ingest, state_of
from tests.contract.parser_backends.answers import DOCLING, LAYOUT, read_result
from tests.contract.parser_backends.servers import (
    KEY,
    DoclingStandIn,
    DocumentIntelligenceStandIn,
    Fault,
    StandIn,
)
from tests.servers import unique_name
from tests.unit.ingestion.figure_files import TEXT, FigureMaker, picture

pytestmark = [pytest.mark.contract, pytest.mark.e2e]  # runs long, so it is part of `make e2e`
Configure = Callable[..., Awaitable[Services]]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docling, "_POLL_S", 0.01)
    monkeypatch.setattr(document_intelligence, "_POLL_S", 0.01)


@pytest.fixture
def name() -> str:
    return f"services/{unique_name('report')}.pdf"


@pytest.fixture
async def configured(services: Services) -> AsyncIterator[Configure]:
    """Yield a function that returns the services of an app with additional settings."""
    all_services: list[Services] = []

    async def configure(server: StandIn, **changes: Any) -> Services:
        prefix = "docling" if isinstance(server, DoclingStandIn) else "document_intelligence"
        key = "docling_api_key" if isinstance(server, DoclingStandIn) else "document_intelligence_key"
        reached = {f"{prefix}_endpoint": server.endpoint, key: KEY, **changes}
        settings = services.settings.changed(**reached)
        built = build_services(settings)
        all_services.append(built)
        return replace(services, settings=settings, parser_services=built.parser_services)

    yield configure
    for built in all_services:
        await built.close()


@pytest.fixture
async def intelligence() -> AsyncIterator[DocumentIntelligenceStandIn]:
    read = read_result("The valve opens at seven bar.", first_page=2)
    async with DocumentIntelligenceStandIn(layout=LAYOUT, read=read) as server:
        yield server


def report(folder: Path) -> bytes:
    """Return a two-page PDF whose first page shows a chart and whose text differs from
    the services' results.
    """
    maker = FigureMaker().page().heading("Seen by our own parser").chart().page().paragraph(TEXT)
    return maker.write(folder / "report.pdf").read_bytes()


def half_scan(folder: Path) -> bytes:
    """Return a PDF with a page of text and a scanned page."""
    maker = FigureMaker().page().paragraph(TEXT).page().background(picture(seed=3))
    return maker.write(folder / "scan.pdf").read_bytes()


async def drop(services: Services, name: str, content: bytes) -> None:
    await services.blobs.ensure_containers([DOCUMENTS])
    await services.blobs.write(DOCUMENTS, name, content, metadata={"owner_id": "u1", "acl": "engineering"})


def texts(rows: list[IndexRow]) -> str:
    return "\n".join(row.get("content") or "" for row in rows)


async def check_layout(services: Services, name: str) -> None:
    assert (await ingest(services, name)).outcome == "ready"
    rows = await blocks_of(services, name)
    by_page = {row["page_number"]: row for row in rows if "Stop it first." in (row.get("content") or "")}
    assert list(by_page) == [2]
    assert by_page[2]["heading_path"] == "Pump report > Safety"
    text = texts(rows)
    assert "| Part | Bar |" in text
    assert "| A | 6 |" in text
    assert "Seen by our own parser" not in text
    (image,) = [row for row in rows if row["block_type"] == "image"]
    assert image["page_number"] == 1
    assert image["image_caption"].startswith("Figure 1: Flow")
    (document,) = await documents_of(services, name)
    assert document["page_count"] == 2
    assert (await state_of(services, name)).warnings == ()


async def test_the_layout_of_document_intelligence_is_what_is_indexed(
    configured: Configure, intelligence: DocumentIntelligenceStandIn, name: str, tmp_path: Path
) -> None:
    services = await configured(intelligence, parser_backend="document_intelligence")
    await drop(services, name, report(tmp_path))
    await check_layout(services, name)


async def test_the_layout_of_docling_is_what_is_indexed(
    configured: Configure, name: str, tmp_path: Path
) -> None:
    async with DoclingStandIn(DOCLING) as server:
        services = await configured(server, parser_backend="docling")
        await drop(services, name, report(tmp_path))
        await check_layout(services, name)


async def test_a_scanned_page_is_read_by_document_intelligence_and_no_other(
    configured: Configure, intelligence: DocumentIntelligenceStandIn, name: str, tmp_path: Path
) -> None:
    services = await configured(intelligence, text_recognition="document_intelligence")
    await drop(services, name, half_scan(tmp_path))
    assert (await ingest(services, name)).outcome == "ready"
    assert intelligence.served[0].query["pages"] == "2"
    rows = await blocks_of(services, name)
    (read,) = [row for row in rows if "seven bar" in (row.get("content") or "")]
    assert read["page_number"] == 2
    assert TEXT.split(".", maxsplit=1)[0] in texts(rows)
    assert (await state_of(services, name)).warnings == ()


async def test_a_picture_is_read_by_document_intelligence(
    configured: Configure, intelligence: DocumentIntelligenceStandIn, name: str, tmp_path: Path
) -> None:
    intelligence.results["prebuilt-read"] = read_result("The valve opens at seven bar.")
    services = await configured(intelligence, text_recognition="document_intelligence")
    Image.effect_noise((300, 200), 60).save(tmp_path / "a.png")
    name = name.replace(".pdf", ".png")
    await drop(services, name, (tmp_path / "a.png").read_bytes())
    assert (await ingest(services, name)).outcome == "ready"
    assert "seven bar" in texts(await blocks_of(services, name))


@pytest.mark.parametrize(
    ("changes", "make", "outcome"),
    [
        ({"text_recognition": "document_intelligence"}, report, "ready"),
        ({}, half_scan, "ready"),
        ({"parser_backend": "document_intelligence"}, lambda _: b"PK\x03\x04 something else", "failed"),
    ],
    ids=["text on each page", "no backend", "no PDF"],
)
async def test_what_a_service_need_not_read_is_sent_nowhere(
    configured: Configure,
    intelligence: DocumentIntelligenceStandIn,
    name: str,
    tmp_path: Path,
    changes: dict[str, str],
    make: Callable[[Path], bytes],
    outcome: str,
) -> None:
    services = await configured(intelligence, **changes)
    await drop(services, name, make(tmp_path))
    assert (await ingest(services, name)).outcome == outcome
    assert intelligence.served == []


async def test_a_backend_that_stays_away_leaves_the_file_to_our_own_parser_with_a_warning(
    configured: Configure, intelligence: DocumentIntelligenceStandIn, name: str, tmp_path: Path
) -> None:
    services = await configured(intelligence, parser_backend="document_intelligence")
    intelligence.faults = [Fault(status=429, headers={"Retry-After": "300"})] * 50
    await drop(services, name, report(tmp_path))
    assert (await ingest(services, name)).outcome == "ready"
    assert "Seen by our own parser" in texts(await blocks_of(services, name))
    (warning,) = (await state_of(services, name)).warnings
    assert warning.startswith("Too many requests for the Document Intelligence resource.")
    assert warning.endswith("built-in parser.")
    # Each attempt of the step sends one request, because the pause exceeds the step's limit.
    assert len(intelligence.served) == 6


async def test_a_backend_with_a_wrong_key_is_asked_once(
    configured: Configure, intelligence: DocumentIntelligenceStandIn, name: str, tmp_path: Path
) -> None:
    services = await configured(
        intelligence, parser_backend="document_intelligence", document_intelligence_key="wrong"
    )
    await drop(services, name, report(tmp_path))
    assert (await ingest(services, name)).outcome == "ready"
    (warning,) = (await state_of(services, name)).warnings
    assert "Access to the Document Intelligence resource was refused." in warning
    assert "wrong" not in warning


async def test_text_recognition_that_fails_leaves_the_page_unread_or_to_tesseract(
    configured: Configure, intelligence: DocumentIntelligenceStandIn, name: str, tmp_path: Path
) -> None:
    services = await configured(intelligence, text_recognition="document_intelligence")
    intelligence.faults = [Fault(status=400)]
    await drop(services, name, half_scan(tmp_path))
    assert (await ingest(services, name)).outcome == "ready"
    assert TEXT.split(".", maxsplit=1)[0] in texts(await blocks_of(services, name))
    first, *others = (await state_of(services, name)).warnings
    assert first.startswith("The file cannot be read by the Document Intelligence resource (HTTP 400).")
    assert is_installed() or others[0].startswith("Page 2 holds no text")


async def test_a_service_that_reads_too_few_pages_is_not_believed(
    configured: Configure, intelligence: DocumentIntelligenceStandIn, name: str, tmp_path: Path
) -> None:
    intelligence.results["prebuilt-layout"] = {**LAYOUT, "pages": LAYOUT["pages"][:1]}
    services = await configured(intelligence, parser_backend="document_intelligence")
    await drop(services, name, report(tmp_path))
    assert (await ingest(services, name)).outcome == "ready"
    assert "Seen by our own parser" in texts(await blocks_of(services, name))
    (warning,) = (await state_of(services, name)).warnings
    assert warning.startswith("Only 1 page was read by the Document Intelligence resource")
