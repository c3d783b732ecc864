"""Tests for model failures: the user always receives a full answer, a partial answer or quotations."""

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from shared.platform.errors import (
    AuthenticationError,
    ConfigurationError,
    DependencyError,
    InvalidQueryError,
    ModelFixableError,
    PayloadTooLargeError,
    RateLimitError,
)
from tests.fakes.models import HashingEmbedder
from tests.fakes.search_index import InMemorySearchIndex
from tests.fakes.services import fake_services, fake_settings
from tests.unit.answering.faulty_writers import Streaming, answer_of, at_once, broken, warnings_in, whole
from tests.world import Model, ask, corpus_services, plan


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.answering.script._FIRST_DELAY_S", 0.01)


async def test_a_model_that_is_down_leaves_the_passages_to_speak_for_themselves() -> None:
    model = Streaming(at_once)
    answer = answer_of(*(await ask(await corpus_services(chat_model=model))))
    assert "“The pump runs at 15 bar.” (Source: manual.pdf, S. 1)[1]" in answer.text
    assert next((one.quote, one.verified) for one in answer.citations) == ("The pump runs at 15 bar.", True)
    assert answer.warnings == ("No answer could be written because the model failed.",)
    assert answer.warnings[0] in answer.text
    assert not answer.abstained
    assert [prompt.name for prompt in model.prompts] == ["plan", "answer", "answer"]  # two attempts


async def test_the_words_are_those_of_the_plans_language() -> None:
    services = await corpus_services(chat_model=Streaming(at_once, planned=plan(language="de")))
    answer = answer_of(*(await ask(services, "Mit welchem Druck läuft die Pumpe?")))
    assert answer.text.startswith("Diese Stellen der Dokumente passen am besten zur Frage:")
    assert answer.warnings == (
        "Es konnte keine Antwort geschrieben werden, weil das Modell ausgefallen ist.",
    )


async def test_a_model_that_fails_once_and_then_writes_costs_no_warning() -> None:
    async def limited() -> AsyncGenerator[str, None]:
        for _ in ("it fails before it says anything",):
            raise RateLimitError("Slow down.", retry_after_s=0.01)
        yield ""

    answer = answer_of(*(await ask(await corpus_services(chat_model=Streaming(limited, whole)))))
    assert answer.text == "It runs at 15 bar. (Source: manual.pdf, S. 1)[1]"
    assert answer.warnings == ()


async def test_a_stream_that_breaks_is_begun_anew_while_there_is_time() -> None:
    answer = answer_of(*(await ask(await corpus_services(chat_model=Streaming(broken, whole)))))
    assert answer.text == "It runs at 15 bar. (Source: manual.pdf, S. 1)[1]"


async def test_a_stream_that_breaks_again_leaves_its_whole_sentences() -> None:
    view, events = await ask(await corpus_services(chat_model=Streaming(broken)))
    answer = answer_of(view, events)
    note = "The answer is incomplete because the model stopped responding."
    assert answer.text == f"It runs at 15 bar. (Source: manual.pdf, S. 1)[1]\n\n*(Note: {note})*"
    assert (answer.warnings, warnings_in(events), answer.truncated) == ((note,), (note,), True)
    assert [one.n for one in answer.citations] == [1]


@pytest.mark.parametrize(
    "refusal",
    [
        AuthenticationError("Refused."),
        ModelFixableError("Filtered."),
        InvalidQueryError("The model refused the request."),
        PayloadTooLargeError("The prompt is too long."),
        ConfigurationError("There is no such model."),
    ],
)
async def test_a_model_that_refuses_is_no_failure_of_the_run(refusal: Any) -> None:
    answer = answer_of(*(await ask(await corpus_services(Model(plan(), answer=refusal)))))
    assert "“The pump runs at 15 bar.”" in answer.text


async def test_an_answer_without_a_word_is_none() -> None:
    answer = answer_of(*(await ask(await corpus_services(Model(plan(), answer="  ")))))
    assert answer.warnings == ("No answer could be written because the model failed.",)


async def test_text_that_proves_nothing_gives_way_to_passages_that_do() -> None:
    async def unproved() -> AsyncGenerator[str, None]:
        yield "It runs at some pressure. And so"
        raise DependencyError("The connection broke.")

    answer = answer_of(*(await ask(await corpus_services(chat_model=Streaming(unproved)))))
    assert "some pressure" not in answer.text
    assert "“The pump runs at 15 bar.”" in answer.text


async def test_a_listing_without_a_model_lists_what_was_found() -> None:
    listing = Streaming(at_once, planned=plan(query_type="LISTING"))
    answer = answer_of(*(await ask(await corpus_services(chat_model=listing))))
    assert answer.text.startswith("These documents fit the question best:\n\n- ")
    assert "- manual (manual.pdf, 2026-01-01)" in answer.text


async def test_without_evidence_and_without_a_model_the_answer_is_that_there_is_none() -> None:
    services = fake_services(chat_model=Streaming(at_once, planned=DependencyError("Down.")))
    view, events = await ask(services)
    answer = answer_of(view, events)
    assert answer.abstained
    assert answer.missing
    assert answer.next_step
    assert answer.warnings == warnings_in(events) != ()


async def test_an_embedder_that_fails_costs_the_meaning_and_a_warning() -> None:
    class Down(HashingEmbedder):
        async def embed(self, texts: Any, limits: Any) -> list[tuple[float, ...]]:
            raise RateLimitError("Slow down.")

    services = await corpus_services()
    answer = answer_of(*(await ask(replace(services, embedder=Down()))))
    assert answer.text.startswith("It runs at 15 bar.")
    (warning,) = answer.warnings
    assert "keyword search" in warning


async def test_a_search_that_fails_fails_the_run_an_abstention_would_be_a_lie() -> None:
    class Down(InMemorySearchIndex):
        async def search(self, request: Any) -> Any:
            raise DependencyError("The search service is out of reach.")

    services = replace(await corpus_services(), content_index=Down("block_id"))
    view, events = await ask(services)
    assert (view.status, view.error_type) == ("failed", "NetworkError")
    assert events[-1].name == "ERROR"


async def test_a_search_for_a_gap_whose_answer_fails_leaves_the_first_answer_that_there_is_none() -> None:
    async def abstaining() -> AsyncGenerator[str, None]:
        yield '<gap missing="The revenue was million euros." next_step="Ask."/>'

    # A single block per search, so that the second attempt finds a different one.
    settings = fake_settings(answer_blocks=1, subagents_enabled=False)
    model = Streaming(abstaining, at_once)
    view, events = await ask(await corpus_services(chat_model=model, settings=settings))
    assert [prompt.name for prompt in model.prompts] == ["plan", "answer", "answer", "answer"]
    answer = answer_of(view, events)
    assert answer.abstained
    assert answer.missing == "The revenue was million euros."


async def test_a_model_that_is_misconfigured_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    wrong = ConfigurationError("There is no such model.")
    await ask(await corpus_services(Model(wrong, answer=wrong)))
    events = [json.loads(line) for line in caplog.messages]
    error_types = {one["event"]: one["error_type"] for one in events if "error_type" in one}
    assert error_types == {"plan.fallback": "ConfigurationError", "answer.degraded": "ConfigurationError"}
