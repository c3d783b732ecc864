"""Both parser services through their real clients: their results, and every kind of failure."""

import time
from pathlib import Path

import pytest

from shared.ingestion import parser_services
from shared.ingestion.docling import Docling
from shared.ingestion.document_intelligence import DocumentIntelligence
from shared.platform.errors import (
    AuthenticationError,
    BadDocumentError,
    CallTimeoutError,
    ConfigurationError,
    DependencyError,
    GroundworkError,
    RateLimitError,
)
from shared.platform.language_models.models import CallLimits
from shared.wiring import Connections
from tests.contract.parser_backends.conftest import LIMITS, Backend
from tests.contract.parser_backends.servers import DoclingStandIn, DocumentIntelligenceStandIn, Fault
from tests.fakes.services import fake_settings

pytestmark = pytest.mark.contract
WRONG = {"document_intelligence_key": "wrong-key-0123", "docling_api_key": "wrong-key-0123"}


async def test_headings_text_tables_and_figures_come_in_reading_order(backend: Backend, source: Path) -> None:
    layout = await backend.client.read_layout(source, "Pump.PDF", LIMITS)
    pieces = [(piece.kind, piece.text, piece.page_number, piece.level) for piece in layout.pieces]
    last = ("list_item", "- Stop it first.")
    # This service has no lists, so the app's parser recognises their marks.
    if backend.variable == "DOCUMENT_INTELLIGENCE":
        last = ("paragraph", "Stop it first.")
    in_figure = ("Figure 1: Flow", "Inlet")
    assert [row for row in pieces if row[1] not in in_figure] == [
        ("heading", "Pump report", 1, 1),
        ("paragraph", "The pump moves water.", 1, None),
        ("table", "", 1, None),
        ("heading", "Safety", 2, 2),
        (*last, 2, None),
    ]
    assert layout.pieces[2].rows == (("Part", "Bar"), ("A", "6"))
    assert layout.page_count == 2


async def test_a_figure_has_its_caption_its_words_and_its_place(backend: Backend, source: Path) -> None:
    layout = await backend.client.read_layout(source, "pump.pdf", LIMITS)
    (figure,) = [piece for piece in layout.pieces if piece.kind == "figure"]
    assert (figure.text, figure.words, figure.page_number) == ("Figure 1: Flow", "Inlet", 1)
    assert figure.area is not None
    assert (round(figure.area.left, 2), round(figure.area.top, 2)) == (0.12, 0.09)
    assert (round(figure.area.right, 1), round(figure.area.bottom, 1)) in ((0.8, 0.7), (0.9, 0.7))
    assert {"Figure 1: Flow", "Inlet"} <= {piece.text for piece in layout.pieces if piece.kind == "paragraph"}


async def test_the_whole_file_is_sent_without_its_name(backend: Backend, source: Path) -> None:
    await backend.client.read_layout(source, "secret-merger.pdf", LIMITS)
    request = backend.server.served[0]
    assert request.path == backend.submit_path
    assert request.body == source.read_bytes()
    assert "merger" not in str((request.query, request.fields))


@pytest.mark.parametrize(
    "fault", [Fault(status=429, headers={"Retry-After": "1"}), Fault(status=503)], ids=["busy", "failing"]
)
@pytest.mark.parametrize("position", [0, 1, 2], ids=["submit", "status", "result"])
async def test_a_service_that_fails_once_is_asked_again_after_the_pause_it_names(
    backend: Backend, source: Path, position: int, fault: Fault
) -> None:
    backend.server.faults = [None] * position + [fault]
    started = time.monotonic()
    layout = await backend.client.read_layout(source, "a.pdf", LIMITS)
    assert layout.page_count == 2
    assert time.monotonic() - started >= float(fault.headers.get("Retry-After", 0))


async def test_a_pause_beyond_the_limit_is_handed_up(backend: Backend, source: Path) -> None:
    backend.server.faults = [Fault(status=429, headers={"Retry-After": "77"})]
    with pytest.raises(RateLimitError) as refused:
        await backend.client.read_layout(source, "a.pdf", LIMITS)
    assert refused.value.retry_after_s == 77
    assert len(backend.server.served) == 1


async def test_a_lasting_fault_is_given_up_after_the_last_retry(backend: Backend, source: Path) -> None:
    backend.server.faults = [Fault(status=500)] * 9
    with pytest.raises(DependencyError, match="HTTP 500") as given_up:
        await backend.client.read_layout(source, "a.pdf", LIMITS)
    assert given_up.value.retryable
    assert len(backend.server.served) == 1 + LIMITS.max_retries


@pytest.mark.parametrize("position", [0, 1, 2], ids=["submit", "status", "result"])
async def test_a_service_that_hangs_is_left_behind(backend: Backend, source: Path, position: int) -> None:
    backend.server.faults = [None] * position + [Fault(delay_s=30)]
    started = time.monotonic()
    with pytest.raises(CallTimeoutError):
        await backend.client.read_layout(source, "a.pdf", CallLimits(timeout_s=1, max_retries=2))
    assert time.monotonic() - started < 20  # the service hangs for 30 s


@pytest.mark.parametrize(
    "body", ["no json", "[]", '{"status": "succeeded"}', '{"task_id": "../x", "task_status": ""}']
)
@pytest.mark.parametrize("position", [0, 1, 2], ids=["submit", "status", "result"])
async def test_an_answer_of_another_shape_is_no_crash(
    backend: Backend, source: Path, position: int, body: str
) -> None:
    status = 202 if position == 0 and backend.variable == "DOCUMENT_INTELLIGENCE" else 200
    backend.server.faults = [None] * position + [Fault(status=status, body=body)] * 3
    with pytest.raises((DependencyError, BadDocumentError)):
        await backend.client.read_layout(source, "a.pdf", CallLimits(timeout_s=10, max_retries=0))


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, BadDocumentError), (415, BadDocumentError), (422, BadDocumentError), (404, ConfigurationError)],
)
async def test_a_refusal_says_whose_fault_it_is_and_is_no_reason_to_retry(
    backend: Backend, source: Path, status: int, error: type[GroundworkError]
) -> None:
    backend.server.faults = [Fault(status=status)]
    with pytest.raises(error) as refused:
        await backend.client.read_layout(source, "a.pdf", LIMITS)
    assert not refused.value.retryable
    assert (f"{backend.variable}_ENDPOINT" in refused.value.detail) == (status == 404)


async def test_a_wrong_key_names_the_setting_and_not_the_key(backend: Backend, source: Path) -> None:
    name = "document_intelligence" if backend.variable == "DOCUMENT_INTELLIGENCE" else "docling"
    to = Connections(fake_settings(**WRONG, **{f"{name}_endpoint": backend.server.endpoint}))
    client = DocumentIntelligence(to.document_intelligence) if name != "docling" else Docling(to.docling)
    with pytest.raises(AuthenticationError) as refused:
        await client.read_layout(source, "a.pdf", LIMITS)
    await to.close()
    error_text = " ".join((refused.value.detail, *refused.value.hints))
    assert backend.variable in error_text
    assert "wrong-key" not in error_text
    assert backend.server.served == []


async def test_nobody_listening_names_the_setting(source: Path) -> None:
    settings = fake_settings(
        docling_endpoint="http://127.0.0.1:9",
        document_intelligence_endpoint="http://127.0.0.1:9",
        document_intelligence_key="k",
    )
    to = Connections(settings)
    for client in (DocumentIntelligence(to.document_intelligence), Docling(to.docling)):
        with pytest.raises(DependencyError) as unreachable:
            await client.read_layout(source, "a.pdf", CallLimits(timeout_s=10, max_retries=0))
        assert "_ENDPOINT" in unreachable.value.hints[0]
    await to.close()


async def test_an_answer_without_end_is_cut(
    backend: Backend, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser_services, "MAX_ANSWER_BYTES", 500)
    with pytest.raises(BadDocumentError, match="exceeds"):
        await backend.client.read_layout(source, "a.pdf", LIMITS)


@pytest.mark.attack("outgoing addresses")
async def test_redirects_are_not_followed_with_the_key(backend: Backend, source: Path) -> None:
    async with DoclingStandIn({}) as elsewhere:
        backend.server.faults = [Fault(status=307, headers={"Location": f"{elsewhere.endpoint}/v1/x"})]
        with pytest.raises(DependencyError):
            await backend.client.read_layout(source, "a.pdf", CallLimits(timeout_s=5, max_retries=0))
        assert elsewhere.served == []


@pytest.mark.attack("outgoing addresses")
async def test_the_result_is_asked_of_the_endpoint_whatever_address_the_service_names(
    intelligence: Backend, source: Path
) -> None:
    server = intelligence.server
    assert isinstance(server, DocumentIntelligenceStandIn)
    server.operation_location = "http://127.0.0.1:9/documentintelligence/x/analyzeResults/r-1?api-version=1"
    assert (await intelligence.client.read_layout(source, "a.pdf", LIMITS)).page_count == 2


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        ({"code": "InvalidRequest", "innererror": {"code": "InvalidContent"}}, BadDocumentError),
        ({"code": "InternalServerError", "message": "…"}, DependencyError),
        ({"code": "words of the document, spaced", "message": "…"}, DependencyError),
    ],
)
async def test_a_failed_analysis_says_whose_fault_it_is(
    intelligence: Backend, source: Path, failure: dict[str, object], error: type[Exception]
) -> None:
    server = intelligence.server
    assert isinstance(server, DocumentIntelligenceStandIn)
    server.failure = failure
    with pytest.raises(error) as failed:
        await intelligence.client.read_layout(source, "a.pdf", LIMITS)
    assert "words of the document" not in str(failed.value)


async def test_pages_are_read_by_the_read_model_and_only_those_that_are_asked_for(
    intelligence: Backend, source: Path
) -> None:
    assert isinstance(intelligence.client, DocumentIntelligence)
    reading = await intelligence.client.read_pages(source, [2, 1], LIMITS)
    assert reading.texts == {1: "One", 2: "Two"}
    request = intelligence.server.served[0]
    assert "prebuilt-read" in request.path
    assert request.query["pages"] == "1-2"


async def test_a_conversion_that_fails_is_the_files_fault(docling_serve: Backend, source: Path) -> None:
    assert isinstance(docling_serve.server, DoclingStandIn)
    docling_serve.server.final_status = "failure"
    with pytest.raises(BadDocumentError):
        await docling_serve.client.read_layout(source, "a.pdf", LIMITS)
