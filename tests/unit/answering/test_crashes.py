"""Tests for workers that die at any append: the next attempt continues the run from its stored events."""

from collections.abc import Sequence

import pytest

from shared.answering.effects import perform_metered
from shared.answering.models import Turn
from shared.answering.runs import begin_run, view_run
from shared.answering.script import RunEnd
from shared.answering.shown_answer import shown_text
from shared.answering.steps import StepFields, StepInput
from shared.runs.events import RunEvent
from shared.runs.journal import read_journal
from shared.runs.models import ChatRequest, RunView
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.dying import Died
from tests.fakes.run_log import ForgetfulLog, InMemoryRunLog
from tests.scripts import next_action, observe, start, tokens_of
from tests.world import ANNA, corpus_services

APPENDS = 8  # of a plain question, not counting the append that creates its journal


class DyingLog(InMemoryRunLog):
    """A log that kills the worker once, before or after an append."""

    def __init__(self, at: int, *, is_behind: bool) -> None:
        super().__init__()
        self.at, self.is_behind = at, is_behind
        self.appends = -1  # the first append creates the journal
        self.has_died = False

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        self.appends += 1
        dies = self.appends == self.at
        self.has_died = self.has_died or dies
        if dies and not self.is_behind:
            raise Died
        end = await super().append(run_id, events, at_offset=at_offset)
        if dies:
            raise Died
        return end


async def answered(services: Services, run_id: str) -> RunView:
    """Perform the steps of a run as the host does, and repeat a step if its worker died."""
    results = start()
    while not isinstance(action := next_action(results), RunEnd):
        assert isinstance(action, StepFields)
        values = {"run_id": run_id, "action": action.model_dump(), "tokens": tokens_of(results)}
        try:
            result = await perform_metered(StepInput.model_validate(values), services)
        except (Died, BaseExceptionGroup):
            await check(services, run_id)
            continue
        results = observe(results, result.observation, result.tokens)
    await check(services, run_id)
    return await view_run(await owned_run(run_id, ANNA, services.runs), services, ANNA)


async def check(services: Services, run_id: str) -> None:
    """Check that the journal contains exactly the completed text that readers received."""
    log = services.run_log
    assert isinstance(log, InMemoryRunLog)
    journal = await read_journal(log, services.blobs, run_id)
    turn = await journal.find(2, Turn, "turn")
    assert (turn is not None) == (journal.completion(2) is not None)
    if turn is not None:
        assert shown_text(log.events(run_id)) == turn.answer.text


async def start_run(log: InMemoryRunLog) -> tuple[Services, str]:
    services = await corpus_services(run_log=log)
    request = await begin_run(ChatRequest(question="At what pressure?"), ANNA, services)
    return services, request.run_id


@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("at", range(1, APPENDS + 1))
async def test_a_crash_at_any_append_leaves_one_answer_that_everybody_sees(at: int, is_behind: bool) -> None:
    log = DyingLog(at, is_behind=is_behind)
    services, run_id = await start_run(log)
    view = await answered(services, run_id)
    assert log.has_died
    assert view.status == "completed"
    assert view.answer is not None
    assert shown_text(log.events(run_id)) == view.answer.text
    assert [event.name for event in log.events(run_id)].count("COMPLETE") == 1


async def test_a_plain_question_takes_few_appends() -> None:
    log = DyingLog(1000, is_behind=False)
    await answered(*await start_run(log))
    assert log.appends == APPENDS


async def test_a_lost_reply_to_every_append_changes_nothing() -> None:
    seen = []
    for log in (InMemoryRunLog(), ForgetfulLog()):
        services, run_id = await start_run(log)
        view = await answered(services, run_id)
        assert view.answer is not None
        seen.append((view.answer.text, [event.name for event in log.lines(run_id)]))
    assert seen[0] == seen[1]
