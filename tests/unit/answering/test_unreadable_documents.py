"""Tests for answers about files without readable text."""

from typing import Any

from shared.platform.language_models.models import ModelTurn, ToolCall
from shared.retrieval.models import DocumentRecord
from shared.wiring import Services
from tests.fakes.models import ScriptedChatModel, scripted
from tests.unit.answering.test_answering import text_of
from tests.world import add_record, ask, corpus_services, plan

SCAN = "scan_0001.pdf"


async def with_scan(*replies: Any, **of_plan: Any) -> Services:
    """Return the three documents of the test corpus and a three-page scan without text."""
    services = await corpus_services(
        chat_model=ScriptedChatModel(plan(search_queries=(), todo=(), **of_plan), *replies)
    )
    record = {"doc_id": "scan", "filename": SCAN, "title": "scan 0001", "page_count": 3, "status": "ready"}
    rights = {"upload_date": "2026-01-01T00:00:00Z", "access_control_list": ["*"]}
    await add_record(services, DocumentRecord.of_row({**record, **rights}))
    return services


def prompt_text(services: Services, turn: int = -1) -> str:
    return "\n".join(message.text for message in scripted(services.chat_model).conversations[turn])


async def test_the_reader_learns_that_it_exists_and_why_it_tells_nothing() -> None:
    services = await with_scan(query_type="DOCUMENT_SUMMARY", document_references=(SCAN,))
    view, _ = await ask(services, question=f"What does {SCAN} say of the pump?")
    assert text_of(view) == (
        "The documents don't answer this. What's missing: readable text in “scan_0001.pdf” (pages: 3): "
        "the file exists, but it is empty, or its pages are scanned pictures that no text recognition has "
        "read.\n\n"
        "Next step: Upload a version with text, or ask for text recognition to be set up."
    )
    assert view.answer is not None
    assert view.answer.abstained
    assert scripted(services.chat_model).conversations == []  # no other document was shown


async def test_beside_another_document_the_model_learns_it() -> None:
    answer = '<answer>15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
    references = (SCAN, "manual.pdf")
    services = await with_scan(answer, query_type="COMPARISON", document_references=references)
    await ask(services, question=f"Compare {SCAN} with manual.pdf")
    assert f"<unreadable_document>{SCAN} exists but has no readable text" in prompt_text(services)
    assert "It has 3 pages." in prompt_text(services)
    assert "report-2023.pdf" not in prompt_text(services)


async def test_reading_its_pages_gives_the_reason() -> None:
    call = ToolCall(call_id="c1", name="read_pages", arguments='{"doc_id": "scan", "first": 1, "last": 3}')
    services = await with_scan(ModelTurn(tool_calls=(call,)), "<answer>It runs.")
    await ask(services)
    (result,) = [one.text for one in scripted(services.chat_model).conversations[-1] if one.call_id == "c1"]
    assert f"{SCAN} exists but has no readable text" in result
    assert "It has 3 pages." in result


async def test_pages_mark_what_was_shown_before() -> None:
    call = ToolCall(call_id="c1", name="read_pages", arguments='{"doc_id": "manual"}')
    services = await with_scan(ModelTurn(tool_calls=(call,)), "<answer>It runs.")
    more = {"doc_id": "manual", "filename": "manual.pdf", "block_type": "text", "page_number": 1}
    rights = {"access_control_list": ["engineering"]}
    blocks = [
        {**more, **rights, "block_id": f"manual-{number}", "ordinal": number, "content": f"Step {number}."}
        for number in (2, 3)
    ]
    await services.content_index.upload(blocks)
    await ask(services)
    (result,) = [one.text for one in scripted(services.chat_model).conversations[-1] if one.call_id == "c1"]
    first, second, third = [line for line in result.splitlines() if line.startswith("<block")]
    assert first == '<block page="1" type="text" omitted="shown before"/>'
    assert ("Step 2." in second, "Step 3." in third) == (True, True)
