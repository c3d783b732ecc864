"""Tests for the checks of the demo, which detect every kind of wrong answer."""

import json
from typing import Any

import pytest

from local.run_all.api_client import Reply, StreamEvent, collect, read_events
from local.run_all.proof import SampleTexts, check_reply
from samples.acl import ANNA, BEN
from samples.generate import generate
from samples.questions import Expected

GOOD: dict[str, Any] = {
    "n": 1,
    "filename": "leave-policy.pdf",
    "page_number": 1,
    "quote": "Fernhill Pumpworks grants 18 weeks of paid parental leave to each parent.",
    "verified": True,
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> SampleTexts:
    folder = tmp_path_factory.mktemp("samples")
    generate(folder)
    return SampleTexts(folder)


def reply(text: str, *citations: dict[str, Any], abstained: bool = False) -> Reply:
    answer = {"text": text, "citations": list(citations), "abstained": abstained}
    return Reply([StreamEvent(1, "complete", {}, json.dumps(answer))], answer)


def findings(answer: Reply, texts: SampleTexts, expected: Expected = Expected()) -> list[str]:  # noqa: B008
    return [finding.text for finding in check_reply(answer, BEN, expected, texts)]


def test_a_proved_answer_has_no_findings(texts: SampleTexts) -> None:
    expected = Expected(says=("18 weeks",), cites={"leave-policy.pdf": 1})
    assert findings(reply("It is 18 weeks.", GOOD), texts, expected) == []


def test_a_citation_that_the_app_did_not_verify_is_found(texts: SampleTexts) -> None:
    assert "not verified" in findings(reply("x", {**GOOD, "verified": False}), texts)[0]


def test_a_verified_citation_that_stands_nowhere_is_found(texts: SampleTexts) -> None:
    invented = {**GOOD, "quote": "Fernhill Pumpworks grants 81 weeks of parental leave."}
    assert "does not occur in" in findings(reply("x", invented), texts)[0]


def test_a_quotation_from_another_page_is_found(texts: SampleTexts) -> None:
    quote = "The maximum operating pressure of the Heron 400 is 6.5 bar."
    cited = {**GOOD, "filename": "heron-400-manual.pdf", "page_number": 5, "quote": quote}
    assert any("does not occur in" in message for message in findings(reply("x", cited), texts))


def test_a_document_of_somebody_else_is_found_by_name_and_by_content(texts: SampleTexts) -> None:
    messages = findings(reply("See memo-impeller-alloy.txt on Saltmarsh."), texts)
    assert len(messages) == 2
    assert all(text.startswith("ben saw") for text in messages)
    assert not check_reply(reply("Project Saltmarsh."), ANNA, Expected(), texts)


def test_an_answer_where_none_can_be_is_found(texts: SampleTexts) -> None:
    assert findings(reply("Fish."), texts, Expected(abstains=True)) == ["should have abstained"]


def test_an_abstention_where_there_is_an_answer_is_found(texts: SampleTexts) -> None:
    assert "abstained, but" in findings(reply("No.", abstained=True), texts)[0]


def test_a_missing_word_and_a_missing_citation_are_found(texts: SampleTexts) -> None:
    expected = Expected(says=("18 weeks",), cites={"leave-policy.pdf": 2})
    assert len(findings(reply("Long.", GOOD), texts, expected)) == 2


def test_markup_of_a_prompt_in_an_answer_is_found(texts: SampleTexts) -> None:
    assert "markup" in findings(reply('Title: &lt;block heading="A">A'), texts)[0]


def test_an_error_and_an_answer_that_never_came_are_found(texts: SampleTexts) -> None:
    assert "the model is away" in findings(Reply(error={"message": "the model is away"}), texts)[0]
    assert findings(Reply(), texts) == ["never completed"]


def test_a_stream_is_read_to_its_answer() -> None:
    lines = [
        b": keep-alive\n", b"\n",
        b"id: 1\n", b"event: token\n", b'data: {"text":"Hi"}\n', b"\n",
        b"id: 2\n", b"event: complete\n", b'data: {"answer":{"text":"Hi"}}\n', b"\n",
    ]  # fmt: skip
    seen: list[StreamEvent] = []
    answer = collect(read_events(lines), seen.append)
    assert [(event.number, event.name) for event in seen] == [(1, "token"), (2, "complete")]
    assert answer.text == "Hi"
