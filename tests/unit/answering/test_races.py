"""Tests for races at every append of a run: readers, the record and the answer agree on a single end."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import pytest

from shared.answering.effects import perform_metered
from shared.answering.revival import revive_run
from shared.answering.run_end import cancel_run
from shared.answering.runs import begin_run, close_dead_run
from shared.answering.script import RunEnd, StepResults
from shared.answering.shown_answer import shown_text
from shared.answering.steps import StepFields, StepInput
from shared.platform.errors import ConflictError, PayloadTooLargeError
from shared.platform.instances import Instances
from shared.runs.events import RunEvent, StepStatus, is_terminal
from shared.runs.models import ChatRequest
from shared.runs.run_state import fold
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.run_log import InMemoryRunLog
from tests.scripts import next_action, observe, start, tokens_of
from tests.unit.answering.test_crashes import APPENDS
from tests.unit.answering.test_revival import Host
from tests.world import ANNA, corpus_services

Rival = Callable[[Services, str], Awaitable[object]]


class RacingLog(InMemoryRunLog):
    """A log in which a rival acts just before one append of a run, after its offset was chosen."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at
        self.rival: Callable[[], Awaitable[object]] | None = None
        self.has_raced = False
        self.appends = -1  # the first append creates the journal

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        self.appends += 1
        if self.appends == self.at and self.rival is not None and not self.has_raced:
            self.has_raced = True
            await self.rival()
        return await super().append(run_id, events, at_offset=at_offset)


class FullLog(InMemoryRunLog):
    """A log that soon accepts only marks and ends, as the Azure Storage log does near its size limit."""

    def __init__(self, appends: int) -> None:
        super().__init__()
        self.appends = appends

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        is_end = any(is_terminal(event) or isinstance(event, StepStatus) for event in events)
        if len(self.starts.get(run_id, ())) > self.appends and not is_end:
            raise PayloadTooLargeError("The log of this run is full.")
        return await super().append(run_id, events, at_offset=at_offset)


async def run_steps(services: Services, run_id: str) -> StepResults:
    """Perform all steps of a run, as an orchestration with an empty history does."""
    results = start()
    while not isinstance(action := next_action(results), RunEnd):
        assert isinstance(action, StepFields)
        values = {"run_id": run_id, "action": action.model_dump(), "tokens": tokens_of(results)}
        result = await perform_metered(StepInput.model_validate(values), services)
        results = observe(results, result.observation, result.tokens)
    return results


async def cancel(services: Services, run_id: str) -> None:
    with suppress(ConflictError):  # the run has ended
        await cancel_run(run_id, services)


async def find_dead(services: Services, run_id: str) -> None:
    await close_dead_run(run_id, "The run was stopped before it had an answer.", services)


async def revive(services: Services, run_id: str) -> None:
    """Restart the run while the attempt that was believed dead is still writing."""
    await revive_run(run_id, Instances(Host("Failed")), services)
    await run_steps(services, run_id)


async def run_again(services: Services, run_id: str) -> None:
    """Repeat all steps, as a host does that has lost their results."""
    await run_steps(services, run_id)


async def ended(log: InMemoryRunLog) -> tuple[Services, str]:
    services = await corpus_services(run_log=log)
    request = await begin_run(ChatRequest(question="At what pressure?"), ANNA, services)
    return services, request.run_id


async def require_one_end(services: Services, log: InMemoryRunLog, run_id: str) -> str:
    """Return the run's status, after checking that everything agrees on its end."""
    events = log.events(run_id)
    assert [is_terminal(event) for event in events].count(True) == 1
    assert is_terminal(log.lines(run_id)[-1])
    state = fold(log.lines(run_id))
    record = await owned_run(run_id, ANNA, services.runs)
    assert (record.status, record.error_type) == (state.status, state.error_type)
    if state.answer is not None:
        assert shown_text(events) == state.answer.text
    return record.status


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.answering.attempts.POLL_S", 0.01)


@pytest.mark.parametrize("rival", [cancel, find_dead])
@pytest.mark.parametrize("at", range(1, APPENDS + 1))
async def test_whoever_ends_a_run_at_any_append_leaves_one_end(at: int, rival: Rival) -> None:
    log = RacingLog(at)
    services, run_id = await ended(log)
    log.rival = lambda: rival(services, run_id)
    await run_steps(services, run_id)
    assert log.has_raced
    status = await require_one_end(services, log, run_id)
    assert status == ("cancelled" if rival is cancel else "failed")


@pytest.mark.parametrize("rival", [revive, run_again])
@pytest.mark.parametrize("at", range(1, APPENDS + 1))
async def test_an_execution_that_comes_back_at_any_append_leaves_one_answer(at: int, rival: Rival) -> None:
    log = RacingLog(at)
    services, run_id = await ended(log)
    log.rival = lambda: rival(services, run_id)
    await run_steps(services, run_id)
    assert log.has_raced
    assert await require_one_end(services, log, run_id) == "completed"


async def test_executions_side_by_side_leave_one_answer() -> None:
    log = InMemoryRunLog()
    services, run_id = await ended(log)
    await asyncio.gather(*(run_steps(services, run_id) for _ in range(4)))
    assert await require_one_end(services, log, run_id) == "completed"


async def test_a_cancelled_run_that_is_executed_again_stays_cancelled() -> None:
    log = InMemoryRunLog()
    services, run_id = await ended(log)
    await cancel(services, run_id)
    seen = log.lines(run_id)
    await run_steps(services, run_id)
    assert log.lines(run_id) == seen
    assert await require_one_end(services, log, run_id) == "cancelled"


@pytest.mark.parametrize("appends", range(APPENDS + 1))
async def test_a_journal_that_is_full_still_takes_the_end_of_its_run(appends: int) -> None:
    log = FullLog(appends)
    services, run_id = await ended(log)
    await run_steps(services, run_id)
    status = await require_one_end(services, log, run_id)
    # In between, either is possible: a repeated step may need only the append that starts it.
    assert status == {0: "failed", APPENDS: "completed"}.get(appends, status)
