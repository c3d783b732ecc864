"""The writing step: delegate or write, and whatever the model does, something to read for whoever asked.

The policy is asked first. Without sub-agents the answer is written here and now; with them this step only
says so, and a later one writes from what they bring. A model that fails is asked once more while there is
time; then what it has written stands, in whole sentences; else the passages speak for themselves.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from shared.answering.loop import retry_delay_s
from shared.answering.services import AnsweringServices
from shared.answering.shown_answer import show_stored
from shared.answering.step_results import answer_written, step_failed, warning_events, writing_thought
from shared.answering.steps import DelegationDeferred, Observation, SubagentsChosen, WriteAnswer
from shared.answering.synthesis import AnswerBrokenError, Task, answer_without_model, write_answer
from shared.platform.concurrency import run_together
from shared.platform.errors import CallTimeoutError
from shared.platform.language_models.models import CallLimits
from shared.platform.telemetry import get_logger
from shared.quality.run_quality import FiguresSeen, keep_facts, writing_facts
from shared.runs.event_log import EventLog
from shared.runs.events import DiscardedStatus, RunEvent, ThoughtEvent
from shared.runs.models import RunAnswer
from shared.runs.step_time import StepTime
from shared.runs.working_memory import Evidence, StoredPlan, WorkingMemory
from shared.subagents.artifacts import find_delegation
from shared.subagents.collecting import Collected, collect
from shared.subagents.deciding import DelegationDecided, decide_delegation
from shared.subagents.policy_input import Occasion, installed_profiles
from shared.subagents.tasks import starts_of
from shared.tools.searches import StepSearches


class OpenEventLog(Protocol):
    """Begins this attempt in the log, with its first events."""

    def __call__(self, *then: RunEvent) -> Awaitable[EventLog]: ...


@dataclass
class WritingStep:
    """One attempt at writing an answer.

    Attributes:
        is_repeated: an earlier attempt at the step began, and may have chosen sub-agents.
        tokens: that the run has used so far.
        note_time: is told the run's time as soon as it is known.
        figures_available: pictures in what the answer was written from, and on its pages.
    """

    action: WriteAnswer
    services: AnsweringServices
    memory: WorkingMemory
    searches: StepSearches
    open_event_log: OpenEventLog
    is_repeated: bool
    tokens: int
    note_time: Callable[[StepTime], StepTime]
    figures_available: int = 0

    async def perform(self) -> Observation:
        """The answer, streamed; or who is to work on it first."""
        action = self.action
        stored = await self.memory.get(action.plan_step, StoredPlan)
        request = await self.memory.request_for(stored)
        evidence = await self.memory.get(action.evidence_step, Evidence)
        time = self.note_time(StepTime(self.services.settings, request, stored))
        if action.delegation_step:
            collected = await collect(self.memory, action.delegation_step, evidence, self.services)
            return await self._write(stored, collected, time, [])
        occasion = Occasion(
            request,
            stored,
            evidence,
            failures=int(action.replaces > 0),
            step=action.step,
            repeated=self.is_repeated,
            tokens=self.tokens,
        )
        find = self.searches.documents(request).get_many
        decided = await decide_delegation(occasion, self.memory, self.services, find)
        if (observation := _without_answer(decided)) is not None:
            await self.open_event_log(decided.event)
            return observation
        return await self._write(stored, Collected(evidence), time, [decided.event])

    async def _write(
        self, stored: StoredPlan, collected: Collected, time: StepTime, first: Sequence[RunEvent]
    ) -> Observation:
        request = await self.memory.request_for(stored)
        task = Task(
            request=request,
            plan=stored.plan,
            evidence=collected.evidence,
            findings=collected.findings,
            proofs=collected.proofs,
            aside=collected.web,
            warnings=(*stored.warnings, *collected.evidence.warnings, *collected.warnings),
            organisation=self.services.settings.answering.organisation,
        )
        replaces = self.action.replaces
        before = [DiscardedStatus(step=replaces, reason="abstained")] if replaces else []
        thought = ThoughtEvent(text=writing_thought(collected.evidence))
        told = warning_events(collected.warnings)
        event_log = await self.open_event_log(*before, *first, *told, thought)
        answer, is_shown = await self._answer(task, event_log, time)
        answer = answer.model_copy(update={"sub_agents": collected.views})
        facts = writing_facts(event_log, stored.resumed_at or request.created_at, self.figures_available)
        kept, _ = await run_together(
            self.memory.put(self.action.step, answer), keep_facts(self.memory, self.action.step, facts)
        )
        # The first to be stored is what this attempt has shown; should another show its own, it repairs it.
        if kept is not answer or not is_shown:
            await show_stored(self.services.run_log, kept, self.action.step)
        return answer_written(kept, hurried=time.left.is_short)

    async def _answer(self, task: Task, event_log: EventLog, time: StepTime) -> tuple[RunAnswer, bool]:
        """The answer, and whether readers have it as it is.

        Raises:
            GroundworkError: the model failed, and may do better when it is asked once more, or there is an
                answer before this one.
        """
        is_shown = True
        try:
            answer = await self._asked(task, event_log, time)
        except AnswerBrokenError as broken:
            failed = step_failed(broken.failed, time.left.remaining_s)
            is_first = not self.action.replaces
            if retry_delay_s("write", self.action.tries, failed) is not None:
                raise broken.failed from broken
            if not (is_first or broken.partial):
                raise broken.failed from broken  # the first answer, that there is none, says more
            get_logger().warning("answer.degraded", run_id=self.memory.run_id, error_type=broken.failed.code)
            answer, is_shown = broken.partial or answer_without_model(task, broken.failed), False
        if new := [warning for warning in answer.warnings if warning not in task.warnings]:
            await event_log.write(*warning_events(new))
        return answer, is_shown

    async def _asked(self, task: Task, event_log: EventLog, time: StepTime) -> RunAnswer:
        settings = self.services.settings
        if not (time.left.may_write or task.is_empty):
            raise AnswerBrokenError(CallTimeoutError("The time for this question is over."), None)
        figures = FiguresSeen(self.searches.page_figures(task.request), task.evidence.hits)
        try:
            return await write_answer(
                task,
                chat_model=self.services.chat_model,
                event_log=event_log,
                time=time,
                limits=CallLimits(
                    timeout_s=settings.answering.answer_timeout_s,
                    max_output_tokens=settings.answering.max_answer_tokens,
                ),
                page_figures=figures,
            )
        finally:
            self.figures_available = figures.count


async def chosen_before(
    action: WriteAnswer, services: AnsweringServices, memory: WorkingMemory
) -> SubagentsChosen | None:
    """The sub-agents that an earlier attempt at the step chose; None when it chose none."""
    known = None
    if not action.delegation_step:
        known = await find_delegation(services.blobs, memory.run_id, action.step)
    if known is None:
        return None
    settings = services.settings
    starts = starts_of(
        known.tasks,
        installed_profiles(services.web_search),
        settings.subagents.child_retry_count,
        settings.subagents.child_retry_backoff_ms,
    )
    return SubagentsChosen(children=starts, until=max(task.deadline for task in known.tasks))


def _without_answer(decided: DelegationDecided) -> Observation | None:
    """What a decision means for the loop; None when the answer is to be written."""
    if decided.starts and decided.until is not None:
        return SubagentsChosen(children=decided.starts, until=decided.until)
    return None if decided.defer_s is None else DelegationDeferred(delay_s=decided.defer_s)
