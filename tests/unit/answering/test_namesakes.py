"""Tests that an answer names the publisher of a cited file if another file has the same name."""

from typing import Any

import pytest

from shared.retrieval.models import DocumentRecord
from shared.wiring import Services
from tests.fakes.models import ScriptedChatModel
from tests.unit.answering.test_answering import text_of
from tests.unit.evidence.reader_text_corpus import live_parts
from tests.world import add_record, ask, corpus_services, plan

pytestmark = pytest.mark.attack("forged names")

TRUE = '<answer>15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
FAKE = '<answer>65 bar. <cite doc_id="twin" quote="The pump runs at 65 bar."/>'


async def with_twin(
    answer: str,
    *,
    readers: tuple[str, ...] = ("*",),
    filename: str = "manual.pdf",
    publisher: str = "Kim Lee",
) -> Services:
    """Return the three documents of the test corpus and a second file named `filename`."""
    model = ScriptedChatModel(plan(search_queries=(), todo=()), answer)
    services = await corpus_services(chat_model=model)
    text = "The pump runs at 65 bar."
    rights = {"access_control_list": list(readers), "published_by": publisher}
    name_fields: dict[str, Any] = {"doc_id": "twin", "filename": filename}
    record = {**name_fields, **rights, "title": "m", "status": "ready", "upload_date": "2026-01-01T00:00:00Z"}
    await add_record(services, DocumentRecord.of_row(record))
    await services.documents_index.merge([{"doc_id": "manual", "published_by": "Mara (Ek), S. 9)[1]"}])
    vector = [1.0] + [0.0] * (services.embedder.dimensions - 1)
    block = {**name_fields, "block_id": "twin-1", "block_type": "text", "page_number": 1, "content": text}
    await services.content_index.upload(
        [{**block, "content_vector": vector, "access_control_list": list(readers)}]
    )
    return services


async def test_the_publisher_is_named_in_the_text_and_in_the_citation() -> None:
    view, _ = await ask(await with_twin(FAKE))
    assert text_of(view) == "65 bar. (Source: manual.pdf (Kim Lee), S. 1)[1]"
    assert view.answer is not None
    assert [cited.published_by for cited in view.answer.citations] == ["Kim Lee"]


async def test_a_publisher_closes_no_marker() -> None:
    view, _ = await ask(await with_twin(TRUE))
    assert text_of(view) == "15 bar. (Source: manual.pdf (Mara Ek S. 9 1), S. 1)[1]"
    assert live_parts(text_of(view)) == []


async def test_a_file_that_the_asker_may_not_read_changes_nothing() -> None:
    view, _ = await ask(await with_twin(TRUE, readers=("somebody",)))
    assert text_of(view) == "15 bar. (Source: manual.pdf, S. 1)[1]"


async def test_a_name_that_looks_the_same_is_the_same() -> None:
    view, _ = await ask(await with_twin(FAKE, filename="Manual.p\u200bdf"))
    assert text_of(view) == "65 bar. (Source: Manual.pdf (Kim Lee), S. 1)[1]"
