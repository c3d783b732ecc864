"""Tests for races at any append of a run or its sub-agent: readers and the record agree on a single end."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from pydantic import BaseModel

from shared.answering.inline import run_to_end
from shared.answering.profiles import Proof
from shared.answering.revival import revive_run
from shared.answering.runs import begin_run
from shared.platform.instances import Instances
from shared.platform.language_models.models import (
    CallLimits,
    Message,
    ModelTurn,
    ModelUsage,
    Prompt,
    StructuredOutput,
    ToolDefinition,
)
from shared.runs.event_log import RunClosedError, StaleAttemptError, open_event_log
from shared.runs.events import DoneLine
from shared.runs.journal import read_journal
from shared.runs.models import ChatRequest
from shared.wiring import Services
from tests.fakes.models import ScriptedChatModel
from tests.fakes.plans import plan_reply
from tests.fakes.services import fake_settings
from tests.unit.answering.test_races import RacingLog, cancel, find_dead, require_one_end
from tests.unit.answering.test_revival import Host
from tests.unit.subagents.stored_child import READY, calls, evidence
from tests.world import ANNA, corpus_services, plan

APPENDS = 22  # of the run and its sub-agent, without the append that creates the journal
DELEGATES = calls(("delegate", '{"task": "Find the proof.", "profile": "evidence_builder"}'))
SEARCHES = calls(("rag_semantic_search", '{"query": "pump pressure limit"}'))
ANSWERS = ModelTurn(
    text='<answer>It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
)
FOUND = evidence(("It runs at 15 bar.", (Proof(doc_id="manual", quote="The pump runs at 15 bar."),)))
DELEGATING_STEP = 2

Rival = Callable[[Services, str], Awaitable[object]]


class DelegatingModel(ScriptedChatModel):
    """A model that delegates and then answers. Its sub-agent searches and then reports."""

    delegates = DELEGATES

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        reply = plan_reply(plan(intent="procedural"))
        assert isinstance(reply, output)
        return reply

    async def stream_turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        limits: CallLimits,
        *,
        may_call: bool = True,
    ) -> AsyncGenerator[str | ModelTurn, None]:
        is_child = any("<task>" in message.text for message in messages[:2])
        has_results = any(message.role == "tool" for message in messages)
        first, second = (SEARCHES, READY) if is_child else (self.delegates, ANSWERS)
        turn = second if has_results else first
        yield turn.text
        yield turn

    async def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        yield FOUND.model_dump_json()


async def start_run(log: RacingLog) -> tuple[Services, str]:
    settings = fake_settings(subagents_enabled=True, max_total_latency_ms=600_000, plan_timeout_s=300)
    services = await corpus_services(chat_model=DelegatingModel(), run_log=log, settings=settings)
    request = await begin_run(ChatRequest(question="At what pressure?"), ANNA, services)
    return services, request.run_id


async def run_again(services: Services, run_id: str) -> None:
    """Perform the run again, including its sub-agent, as a host does that has lost the results."""
    await run_to_end(run_id, services)


async def revive(services: Services, run_id: str) -> None:
    """Restart the run while the attempt that was believed dead is still writing."""
    await revive_run(run_id, Instances(Host("Failed")), services)
    await run_to_end(run_id, services)


async def close(services: Services, run_id: str) -> None:
    """Open the step after the sub-agent, as its parent does at the deadline, unless it is already open."""
    journal = await read_journal(services.run_log, services.blobs, run_id)
    if any(line.step == DELEGATING_STEP + 2 for line in journal.events):
        return
    with suppress(RunClosedError, StaleAttemptError):  # the run has already ended
        await open_event_log(services.run_log, run_id, DELEGATING_STEP + 2)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.answering.attempts.POLL_S", 0.01)
    # A rival that only marks a step never completes it, so don't wait long for it.
    monkeypatch.setattr("shared.answering.attempts.Attempt.patience_s", 0.2)


async def raced(at: int, rival: Rival) -> tuple[RacingLog, str, str]:
    """Run a question with a rival at an append, and return its log, id and status."""
    log = RacingLog(at)
    services, run_id = await start_run(log)
    log.rival = lambda: rival(services, run_id)
    await run_to_end(run_id, services)
    assert log.has_raced
    return log, run_id, await require_one_end(services, log, run_id)


@pytest.mark.parametrize("rival", [cancel, find_dead])
@pytest.mark.parametrize("at", range(1, APPENDS + 1))
async def test_whoever_ends_a_run_with_a_sub_agent_leaves_one_end(at: int, rival: Rival) -> None:
    _, _, status = await raced(at, rival)
    assert status == ("cancelled" if rival is cancel else "failed")


@pytest.mark.parametrize("rival", [revive, run_again])
@pytest.mark.parametrize("at", range(1, APPENDS + 1))
async def test_an_execution_that_comes_back_leaves_one_answer(at: int, rival: Rival) -> None:
    _, _, status = await raced(at, rival)
    assert status == "completed"


@pytest.mark.parametrize("at", range(1, APPENDS + 1))
async def test_a_sub_agent_that_is_closed_at_any_append_writes_nothing_more(at: int) -> None:
    log, run_id, status = await raced(at, close)
    assert status == "completed"
    lines: list[Any] = log.lines(run_id)
    last_of_child = max((place for place, line in enumerate(lines) if line.child is not None), default=-1)
    marks = [place for place, line in enumerate(lines) if line.step == DELEGATING_STEP + 2]
    assert last_of_child < marks[0]


async def test_a_run_with_a_sub_agent_takes_few_appends() -> None:
    log = RacingLog(1000)
    services, run_id = await start_run(log)
    await run_to_end(run_id, services)
    assert await require_one_end(services, log, run_id) == "completed"
    turns = [line for line in log.lines(run_id) if isinstance(line, DoneLine) and line.child is not None]
    assert [line.turn for line in turns] == [1, 2]
    assert log.appends == APPENDS
