"""Tests that a run ends within its time budget, measured by the clock, whatever its model and searches do."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.answering.inline import run_to_end
from shared.answering.runs import Arrival, begin_run, view_run
from shared.answering.steps import Prepare, StepFailed, StepInput
from shared.platform.errors import CallTimeoutError, DependencyError
from shared.platform.language_models.models import CallLimits, ModelTurn
from shared.runs.models import ChatRequest, RunAnswer
from shared.runs.run_store import owned_run
from shared.runs.step_time import StepTime
from shared.wiring import Services
from tests.fakes.models import HashingEmbedder
from tests.fakes.search_index import InMemorySearchIndex
from tests.fakes.services import fake_settings
from tests.scripts import perform
from tests.unit.answering.faulty_writers import (
    BUDGET_S,
    CITED,
    EPSILON_S,
    QUESTION,
    Chunks,
    Streaming,
    answer_of,
    dripping,
    endless,
    hurried,
    silent,
    stalled,
    whole,
)
from tests.world import ANNA, ask, corpus_services


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.answering.script._FIRST_DELAY_S", 0.01)


async def timed(services: Services, *, deep: bool = False) -> tuple[RunAnswer, float]:
    began = time.perf_counter()
    answer = answer_of(*(await ask(services, deep=deep)))
    return answer, time.perf_counter() - began


@pytest.mark.parametrize(
    ("writing", "begins"),
    [
        (stalled, "It runs at 15 bar."),
        (silent, "These passages"),
        (dripping, "It runs at 15 bar."),
        (endless, ""),
    ],
)
async def test_no_way_of_writing_takes_longer_than_the_budget(writing: Chunks, begins: str) -> None:
    model = Streaming(writing)
    answer, took_s = await timed(await corpus_services(chat_model=model, **hurried()))
    was_written = writing is not dripping or CITED in model.taken
    assert answer.text.startswith(begins) or not was_written  # a slow machine may write nothing in time
    assert took_s < BUDGET_S + EPSILON_S
    assert answer.truncated or answer.warnings


async def test_a_stall_leaves_what_was_written_and_says_that_time_was_over() -> None:
    answer, _ = await timed(await corpus_services(chat_model=Streaming(stalled), **hurried()))
    note = "The answer is incomplete because time ran out."
    assert answer.text == f"It runs at 15 bar. (Source: manual.pdf, S. 1)[1]\n\n*(Note: {note})*"


async def test_a_model_that_never_answers_anything_costs_the_budget_and_no_more() -> None:
    class Hanging(Streaming):
        async def parse(self, prompt: Any, output: Any, limits: CallLimits) -> Any:
            await asyncio.sleep(limits.timeout_s)
            raise CallTimeoutError("The model did not answer.")

    class HangingEmbedder(HashingEmbedder):
        async def embed(self, texts: Any, limits: Any) -> list[tuple[float, ...]]:
            await asyncio.sleep(3600)
            return []

    services = await corpus_services(chat_model=Hanging(silent), **hurried())
    answer, took_s = await timed(replace(services, embedder=HangingEmbedder()))
    assert took_s < BUDGET_S + EPSILON_S
    assert "“The pump runs at 15 bar.”" in answer.text
    assert len(answer.warnings) == 3


async def test_settings_that_are_longer_than_the_budget_are_cut_by_it() -> None:
    limits: list[float] = []

    class Noting(Streaming):
        async def parse(self, prompt: Any, output: Any, call_limits: CallLimits) -> Any:
            limits.append(call_limits.timeout_s)
            return await super().parse(prompt, output, call_limits)

    settings = hurried(plan_timeout_s=600, answer_timeout_s=600)
    await ask(await corpus_services(chat_model=Noting(whole), **settings))
    assert limits
    assert max(limits) < BUDGET_S


async def test_a_plan_is_asked_for_once_more_while_there_is_time_and_then_made_by_rule() -> None:
    model = Streaming(whole, planned=DependencyError("Down."))
    answer = answer_of(*(await ask(await corpus_services(chat_model=model))))
    assert answer.text.startswith("It runs at 15 bar.")
    assert [prompt.name for prompt in model.prompts] == ["plan", "plan", "answer"]
    assert len(answer.warnings) == 1


async def test_with_little_time_a_plan_is_made_by_rule_at_once() -> None:
    model = Streaming(whole, planned=DependencyError("Down."))
    services = await corpus_services(chat_model=model, **hurried())
    answer = answer_of(*(await ask(services)))
    assert [prompt.name for prompt in model.prompts] == ["plan", "answer"]
    assert answer.text.startswith("It runs at 15 bar.")


async def test_a_run_whose_time_is_over_asks_no_model_and_answers_all_the_same() -> None:
    model = Streaming(whole)
    services = await corpus_services(chat_model=model, **hurried())
    request = await begin_run(ChatRequest(question=QUESTION), ANNA, services)
    await perform(StepInput(run_id=request.run_id, action=Prepare(step=1)), services)
    await asyncio.sleep(BUDGET_S)
    await run_to_end(request.run_id, services)
    view = await view_run(await owned_run(request.run_id, ANNA, services.runs), services)
    assert view.answer is not None
    assert view.answer.warnings == ("No answer could be written in time.",)
    assert [prompt.name for prompt in model.prompts] == ["plan"]


async def test_searches_that_are_late_leave_what_words_have_found() -> None:
    class Slow(InMemorySearchIndex):
        """An index whose vector searches hang."""

        async def search(self, request: Any) -> Any:
            if request.vectors:
                await asyncio.sleep(3600)
            return await super().search(request)

    services = await corpus_services(**hurried(retrieval_timeout_s=2.0))
    slow = Slow("block_id")
    assert isinstance(services.content_index, InMemorySearchIndex)
    slow.rows = services.content_index.rows
    answer = answer_of(*(await ask(replace(services, content_index=slow))))
    assert answer.text.startswith("It runs at 15 bar.")
    assert [warning[:13] for warning in answer.warnings] == ["Some searches"]


async def test_a_search_that_hangs_altogether_is_a_failure() -> None:
    class Hanging(InMemorySearchIndex):
        async def search(self, request: Any) -> Any:
            await asyncio.sleep(3600)

    services = await corpus_services(**hurried(retrieval_timeout_s=0.05))
    request = await begin_run(ChatRequest(question=QUESTION), ANNA, services)
    step = StepInput(run_id=request.run_id, action=Prepare(step=1))
    failed = await perform(step, replace(services, content_index=Hanging("block_id")))
    assert isinstance(failed, StepFailed)
    assert (failed.error_type, failed.retryable) == ("TimeoutError", False)
    assert failed.remaining_s is not None
    assert failed.remaining_s <= BUDGET_S


async def test_a_runs_time_counts_from_when_its_question_arrived() -> None:
    services = await corpus_services()
    arrived_at = datetime.now(UTC) - timedelta(seconds=3)  # the time lost to a cold start
    request = await begin_run(ChatRequest(question=QUESTION), ANNA, services, Arrival(arrived_at))
    assert request.created_at == arrived_at
    assert (await owned_run(request.run_id, ANNA, services.runs)).created_at == arrived_at
    assert (
        StepTime(services.settings, request).left.remaining_s
        < services.settings.budgets.max_total_latency_ms / 1000 - 3
    )


async def test_sub_agents_whose_model_hangs_cost_the_budget_and_no_more() -> None:
    class Hanging(Streaming):
        async def subagent_turn(self, *args: Any, **kwargs: Any) -> ModelTurn:
            await asyncio.sleep(3600)
            raise AssertionError

    settings = fake_settings(
        max_total_latency_ms=6000,
        min_remaining_latency_to_delegate_ms=4000,
        subagents_reserve_latency_ms=3500,
        subagents_child_min_latency_ms=500,
    )
    answer, took_s = await timed(
        await corpus_services(chat_model=Hanging(stalled), settings=settings), deep=True
    )
    assert took_s < 6.0 + EPSILON_S
    assert [view.status for view in answer.sub_agents] != ["done"]
    assert answer.text.startswith("It runs at 15 bar.")
    assert "The answer is incomplete because time ran out." in answer.warnings
    assert len(answer.warnings) > 1  # includes the warning of the sub-agent
