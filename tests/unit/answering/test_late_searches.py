"""Tests for slow searches: they are awaited, retried once and reported. A second timeout is a failure."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.answering.inline import run_to_end
from shared.answering.runs import Arrival, begin_run, view_run
from shared.platform.errors import DependencyError
from shared.platform.search import SearchPage, SearchRequest
from shared.runs.events import RunEvent
from shared.runs.models import ChatRequest, RunView
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.search_index import InMemorySearchIndex
from tests.fakes.services import fake_settings
from tests.unit.answering.faulty_writers import CITED, QUESTION, answer_of, hurried, warnings_in
from tests.world import ANNA, Model, corpus_services, events_of, plan

UNFINISHED = "The search took too long."


class Late(InMemorySearchIndex):
    """An index whose first `slow` requests take `delay_s` seconds."""

    def __init__(self, services: Services, slow: int = 10**9, delay_s: float = 3600.0) -> None:
        super().__init__("block_id")
        assert isinstance(services.content_index, InMemorySearchIndex)
        self.rows = services.content_index.rows
        self.asked = 0
        self._slow, self._delay_s = slow, delay_s

    async def search(self, request: SearchRequest) -> SearchPage:
        self.asked += 1
        await asyncio.sleep(self._delay_s if self.asked <= self._slow else 0)
        return await super().search(request)


async def run_question(
    services: Services, late_s: float = 0.0, question: str = QUESTION
) -> tuple[RunView, list[RunEvent]]:
    """Run a question that arrived `late_s` seconds ago, and return the run and its events."""
    arrived_at = datetime.now(UTC) - timedelta(seconds=late_s)
    request = await begin_run(ChatRequest(question=question), ANNA, services, Arrival(arrived_at))
    await run_to_end(request.run_id, services)
    view = await view_run(await owned_run(request.run_id, ANNA, services.runs), services)
    return view, events_of(services, request.run_id)


async def with_late(searches: dict[str, Any] | None = None, **settings: Any) -> Services:
    services = await corpus_services(Model(plan=plan(search_queries=()), answer=CITED), **settings)
    return replace(services, content_index=Late(services, **(searches or {})))


async def test_a_search_that_hung_once_is_begun_once_more_and_costs_no_warning() -> None:
    services = await with_late({"slow": 1}, **hurried(retrieval_timeout_s=1.5))
    answer = answer_of(*(await run_question(services)))
    assert answer.text.startswith("It runs at 15 bar.")
    assert answer.warnings == ()


async def test_a_late_run_waits_for_its_search_as_long_as_it_can_and_then_says_that_it_did_not() -> None:
    services = await with_late(settings=fake_settings(subagents_enabled=False))
    began = asyncio.get_running_loop().time()
    view, events = await run_question(services, late_s=21.2)  # 3.8 of 25 s are left, 2.3 s before the end
    took_s = asyncio.get_running_loop().time() - began
    answer = answer_of(view, events)
    assert took_s > 2.0
    assert answer.abstained
    assert answer.text.startswith("The search took too long")
    assert "a document on this that you can read" not in answer.text
    assert answer.next_step == "Ask again in a moment."
    assert answer.warnings == (UNFINISHED,)
    assert warnings_in(events) == (UNFINISHED,)
    (result_data,) = (event.data for event in events if event.name == "TOOL_RESULT")
    assert (result_data["success"], result_data["result_count"]) == (False, 0)


async def test_a_late_run_whose_search_takes_two_seconds_has_its_answer() -> None:
    services = await with_late({"delay_s": 1.0}, settings=fake_settings(subagents_enabled=False))
    answer = answer_of(*(await run_question(services, late_s=20.0)))
    assert not answer.abstained
    assert "15 bar" in answer.text


async def test_what_was_not_searched_is_told_in_the_plans_language() -> None:
    planned = Model(plan=plan(search_queries=(), language="de"), answer=CITED)
    services = await corpus_services(planned, settings=fake_settings(subagents_enabled=False))
    services = replace(services, content_index=Late(services))
    answer = answer_of(*(await run_question(services, 30.0, "Mit welchem Druck läuft die Pumpe?")))
    assert answer.text.startswith("Die Suche hat zu lange gedauert")


async def test_searches_that_had_time_enough_twice_are_the_services_failure() -> None:
    services = await with_late(**hurried(retrieval_timeout_s=0.1))
    view, events = await run_question(services)
    assert view.status == "failed"
    assert events[-1].name == "ERROR"
    assert (view.error_type, events[-1].data["type"]) == ("TimeoutError", "TimeoutError")
    assert isinstance(services.content_index, Late)
    assert services.content_index.asked == 2


async def test_time_in_which_this_process_did_not_get_to_work_proves_nothing_against_the_service() -> None:
    async def hold_up() -> None:
        while True:
            await asyncio.sleep(0.01)
            time.sleep(0.3)  # noqa: ASYNC251  # what a machine does that has too much to do

    holding = asyncio.create_task(hold_up())
    services = await with_late(settings=fake_settings(retrieval_timeout_s=2.0, subagents_enabled=False))
    answer = answer_of(*(await run_question(services)))
    holding.cancel()
    assert answer.abstained
    assert answer.warnings == (UNFINISHED,)
    assert isinstance(services.content_index, Late)
    assert services.content_index.asked == 2


@pytest.mark.parametrize("late_s", [0.0, 30.0])
async def test_a_search_service_that_is_down_is_a_failure_however_late_the_run_is(
    late_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.answering.script._FIRST_DELAY_S", 0.01)

    class Down(InMemorySearchIndex):
        async def search(self, request: SearchRequest) -> SearchPage:
            raise DependencyError("No connection to the search service.")

    services = replace(await corpus_services(), content_index=Down("block_id"))
    view, _ = await run_question(services, late_s)
    assert (view.status, view.error_type) == ("failed", "NetworkError")


async def test_documents_named_in_the_question_are_not_waited_for_when_words_have_found_something() -> None:
    services = await corpus_services(**hurried(retrieval_timeout_s=2.0))
    assert isinstance(services.documents_index, InMemorySearchIndex)

    class Hanging(InMemorySearchIndex):
        async def search(self, request: SearchRequest) -> SearchPage:
            await asyncio.sleep(3600 if request.text else 0)
            return await super().search(request)

    hanging = Hanging("doc_id")
    hanging.rows = services.documents_index.rows
    answer = answer_of(*(await run_question(replace(services, documents_index=hanging))))
    assert answer.text.startswith("It runs at 15 bar.")
