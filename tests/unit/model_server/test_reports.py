"""Tests for reports of sub-agents: verbatim quotations, every document mentioned, and gaps listed."""

import json
from html import escape
from typing import TypeVar

import pytest
from pydantic import BaseModel, JsonValue

from local.model_server.embedding.service import EmbeddingService
from local.model_server.protocol.requests import ChatRequest
from local.model_server.respond import write_reply
from local.model_server.tools import READY
from shared.answering.profiles import ComparatorReport, DocReaderReport, EvidenceReport, WebReport
from tests.unit.model_server.conftest import block, document

ReportT = TypeVar("ReportT", bound=BaseModel)
SAFETY_24 = "The maximum pressure is 250 bar. The filter is replaced every 500 hours."
SAFETY_21 = "The maximum pressure is 230 bar. The filter is replaced every 500 hours."
WARRANTY = "The warranty covers 24 months from delivery. Wear parts such as seals are excluded."
NEW = document(
    "new",
    block(WARRANTY, page="9", heading="7 Warranty"),
    block(SAFETY_24, page="3", heading="3 Safety"),
    filename="press-2024.pdf",
    title="Press manual 2024",
    page_count="40",
)
OLD = document(
    "old",
    block(SAFETY_21, page="4", heading="3 Safety"),
    filename="press-2021.pdf",
    title="Press manual 2021",
)
TEXTS = SAFETY_24 + SAFETY_21 + WARRANTY


def report(
    embedder: EmbeddingService,
    kind: type[ReportT],
    task: str,
    *documents: str,
    more: str = "",
    limit: int | None = None,
) -> ReportT:
    """Return the report for a task, validated against the schema that the request contains."""
    message = f"<task>{escape(task, quote=False)}</task><documents>{''.join(documents)}</documents>{more}"
    body: dict[str, JsonValue] = {
        "model": "m",
        "messages": [{"role": "user", "content": message}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": kind.__name__, "schema": kind.model_json_schema()},
        },
        "max_completion_tokens": limit,
    }
    reply = write_reply(ChatRequest.model_validate(body), embedder)
    return kind.model_validate_json(reply.text)


def test_sections_follow_the_pages_and_claims_are_verbatim(embedder: EmbeddingService) -> None:
    result = report(embedder, DocReaderReport, "Summarise the press manual 2024", NEW)
    assert [section.heading for section in result.sections] == ["3 Safety", "7 Warranty"]
    assert "250 bar" in result.sections[0].summary
    assert len(result.claims) >= 3
    assert all(proof.quote in TEXTS for claim in result.claims for proof in claim.proofs)


def test_a_document_that_no_passage_is_from_is_named_as_unread(embedder: EmbeddingService) -> None:
    targets = "<targets>new: press-2024.pdf\nold: press-2021.pdf</targets>"
    result = report(embedder, DocReaderReport, "Summarise the press manuals", NEW, more=targets)
    assert any("press-2021.pdf" in sentence for sentence in result.uncertainty)


def test_each_document_has_a_side_in_each_contrast(embedder: EmbeddingService) -> None:
    third = document("third", block("The press weighs 900 kg."), title="Data sheet")
    result = report(embedder, ComparatorReport, "Compare the pressure of all presses", NEW, OLD, third)
    contrasts = [*result.differences, *result.conflicts]
    assert contrasts
    assert all({side.doc_id for side in one.sides} == {"new", "old", "third"} for one in contrasts)
    quoted = {side.doc_id for one in contrasts for side in one.sides if side.quote}
    assert {"new", "old"} <= quoted
    assert all(side.quote in TEXTS + "The press weighs 900 kg." for one in contrasts for side in one.sides)


def test_a_claim_is_backed_or_marked(embedder: EmbeddingService) -> None:
    (backed, *_) = report(embedder, EvidenceReport, "How often is the filter replaced?", NEW, OLD).claims
    assert backed.proofs[0].quote == "The filter is replaced every 500 hours."
    assert backed.confidence > 0.5
    (unsupported,) = report(embedder, EvidenceReport, "Who painted the Mona Lisa?", NEW, OLD).claims
    assert unsupported.proofs == ()
    assert unsupported.confidence <= 0.1


WEB = (
    '<web_results><result url="https://www.weather.gov/a" title="Rain 2023">'
    "Rainfall in 2023 was 958 mm in Germany. Sun was rare.</result>"
    '<result url="https://news.example.com/x" title="News">'
    "In Germany the rainfall of 2023 was 958 mm. Other news follow.</result>"
    '<result url="https://garden.example.org/" title="Roses">Roses want sun.</result></web_results>'
)


def test_a_claim_of_the_web_names_its_page(embedder: EmbeddingService) -> None:
    result = report(embedder, WebReport, "How much rainfall did Germany have in 2023?", more=WEB)
    sources = {source.url: source.quote for source in result.claims[0].sources}
    assert set(sources) <= {"https://www.weather.gov/a", "https://news.example.com/x"}
    assert all("958 mm" in quote for quote in sources.values())
    assert any("www.weather.gov" in note for note in result.trust_notes)


@pytest.mark.parametrize("kind", [DocReaderReport, ComparatorReport, EvidenceReport, WebReport])
def test_a_report_of_nothing_is_a_report(embedder: EmbeddingService, kind: type[BaseModel]) -> None:
    report(embedder, kind, "Compare the pressure of the manuals")
    report(embedder, kind, "")


def test_passages_that_tools_found_are_reported_on(embedder: EmbeddingService) -> None:
    messages: JsonValue = [
        {"role": "user", "content": "<task>What is the maximum pressure?</task><next>work</next>"},
        {"role": "tool", "tool_call_id": "1", "content": f"<documents>{NEW}</documents>"},
        {
            "role": "tool",
            "tool_call_id": "2",
            "content": json.dumps({"results": [{"doc_id": "old", "content": SAFETY_21}]}),
        },
    ]
    schema: JsonValue = {"name": "EvidenceReport", "schema": EvidenceReport.model_json_schema()}
    request = ChatRequest.model_validate(
        {
            "model": "m",
            "messages": messages,
            "response_format": {"type": "json_schema", "json_schema": schema},
        }
    )
    result = EvidenceReport.model_validate_json(write_reply(request, embedder).text)
    assert {proof.doc_id for claim in result.claims for proof in claim.proofs} == {"new", "old"}


def test_a_report_leaves_out_last_items_to_fit_its_limit(embedder: EmbeddingService) -> None:
    whole = report(embedder, DocReaderReport, "Summarise the press manual", NEW)
    short = report(embedder, DocReaderReport, "Summarise the press manual", NEW, limit=120)
    assert short.claims == whole.claims[: len(short.claims)]
    assert embedder.count_tokens(short.model_dump_json()) < embedder.count_tokens(whole.model_dump_json())


TARGETS = "<targets>new: press-2024.pdf\nold: press-2021.pdf</targets>"


def turn(*documents: str, **more: JsonValue) -> ChatRequest:
    """Return the request for a turn with tools, sent by a sub-agent that compares two manuals."""
    properties: JsonValue = {"query": {"type": "string"}, "doc_ids": {"type": "array"}}
    parameters: JsonValue = {"type": "object", "properties": properties, "required": ["query"]}
    function: JsonValue = {"name": "rag_semantic_search", "parameters": parameters}
    task = "<task>Compare the pressure of the press manuals</task>"
    message = f"{task}{TARGETS}<documents>{''.join(documents)}</documents><next>work</next>"
    body: dict[str, JsonValue] = {
        "messages": [{"role": "user", "content": message}],
        "tools": [{"type": "function", "function": function}],
    }
    return ChatRequest.model_validate({**body, **more})


def test_a_document_without_passages_is_searched_once(embedder: EmbeddingService) -> None:
    request = turn(NEW)
    call = write_reply(request, embedder).tool_call
    assert call is not None
    arguments = json.loads(call.arguments)
    assert (call.name, arguments) == ("rag_semantic_search", {"query": "pressure", "doc_ids": ["old"]})
    # As another client might write it, with different order and whitespace.
    arguments_json = json.dumps(dict(reversed(arguments.items())), indent=1)
    tool_call: JsonValue = {
        "id": "1",
        "type": "function",
        "function": {"name": call.name, "arguments": arguments_json},
    }
    messages: JsonValue = [
        *(message.model_dump(mode="json") for message in request.messages),
        {"role": "assistant", "content": None, "tool_calls": [tool_call]},
        {"role": "tool", "tool_call_id": "1", "content": "Nothing new: everything found was shown before."},
    ]
    again = ChatRequest.model_validate({**request.model_dump(mode="json"), "messages": messages})
    assert write_reply(again, embedder).text == READY


def test_with_all_at_hand_it_is_ready_unless_it_must_call(embedder: EmbeddingService) -> None:
    assert write_reply(turn(NEW, OLD), embedder).text == READY
    assert write_reply(turn(NEW, tool_choice="none"), embedder).text == READY
    assert write_reply(turn(NEW, tool_choice="none"), embedder, tool_loop=1).tool_call is None
    assert write_reply(turn(NEW, tool_choice="none"), embedder, tool_loop=2).tool_call is not None
