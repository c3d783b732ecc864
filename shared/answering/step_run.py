"""One attempt at one step of a run, with the services bound to the run's user.

A result is stored once: of two attempts the first to store counts, and what readers see follows it.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import assert_never

from shared.answering.asking import ask_step, resolve_step, take_step
from shared.answering.closing import commit_answer, report_failure
from shared.answering.planning import names_documents, todo_items
from shared.answering.planning_step import plan_or_default, resolved_in_time
from shared.answering.retrieval import gather_blocks, gather_documents, phrasings, refine
from shared.answering.services import AnsweringServices
from shared.answering.shown_answer import show_stored, shown_text
from shared.answering.step_results import (
    answer_written,
    evidence_found,
    plan_events,
    tool_result,
    warning_events,
)
from shared.answering.steps import (
    AnswerTaken,
    AnswerWritten,
    AskUser,
    CommitAnswer,
    DocumentsResolved,
    EvidenceFound,
    FindDocuments,
    MakePlan,
    Observation,
    PlanMade,
    RefineEvidence,
    ReportFailure,
    ResolveDocuments,
    RetrieveBlocks,
    RunClosed,
    StepAction,
    StepInput,
    TakeAnswer,
    UserAsked,
    WriteAnswer,
)
from shared.answering.writing_step import WritingStep, chosen_before
from shared.platform.concurrency import run_together
from shared.platform.errors import GroundworkError
from shared.runs.event_log import EventLog, is_closed, open_event_log
from shared.runs.events import (
    DiscardedStatus,
    RunEvent,
    ThoughtEvent,
    TodoListStatus,
    ToolStartedEvent,
    events_of,
)
from shared.runs.log_lines import LogSlice
from shared.runs.models import Clarification, RunAnswer, RunRequest
from shared.runs.step_time import StepTime
from shared.runs.working_memory import Evidence, StoredPlan, WorkingMemory
from shared.tools.searches import StepSearches


class StepRun:
    """One attempt at one step. Each method performs an action and gives what it brought."""

    def __init__(self, services: AnsweringServices, step_input: StepInput) -> None:
        self._services = services
        self._searches = StepSearches(services)
        self._memory = WorkingMemory(services.blobs, step_input.run_id)
        self._run_id = step_input.run_id
        self._action = step_input.action
        self._tokens = step_input.tokens
        self._event_log: EventLog | None = None
        self._written: LogSlice | None = None
        self._time: StepTime | None = None

    @property
    def remaining_s(self) -> float | None:
        """What is left of the run's time; None = the step did not get so far as to know."""
        return self._time.left.remaining_s if self._time else None

    async def known_result(self, action: StepAction) -> Observation | None:
        """What an earlier attempt brought, if one got to its end. Meanwhile the log is read, for `_open`.

        Raises:
            RunClosedError: an answer is known, and the run has ended.
        """
        known, self._written = await run_together(self._known(action), self._log())
        if isinstance(action, CommitAnswer | ReportFailure):
            return RunClosed() if self._written and is_closed(self._written) else None
        if known is None and isinstance(action, WriteAnswer) and self._is_repeated:
            return await chosen_before(action, self._services, self._memory)
        return known

    async def _known(self, action: StepAction) -> Observation | None:
        match action:
            case MakePlan() | ResolveDocuments() | TakeAnswer():
                stored = await self._memory.find(action.step, StoredPlan)
                return None if stored is None else await self._planned(action, stored)
            case AskUser():
                asked = await self._memory.find(action.step, Clarification)
                return None if asked is None else self._asked()
            case FindDocuments() | RetrieveBlocks() | RefineEvidence():
                evidence = await self._memory.find(action.step, Evidence)
                return None if evidence is None else await self._found(action, evidence)
            case WriteAnswer():
                answer = await self._memory.find(action.step, RunAnswer)
                return None if answer is None else await self._shown(action, answer)
            case CommitAnswer() | ReportFailure():
                return None
            case _:
                assert_never(action)

    async def make_plan(self, action: MakePlan) -> Observation:
        """Classify the question and write the todo list."""
        request = await self._memory.request()
        time = self._note_time(StepTime(self._services.settings, request))
        event_log = await self._open(ThoughtEvent(text="Reading the question and deciding how to answer it."))
        limit_s = self._services.settings.answering.plan_timeout_s
        planned = await plan_or_default(self._services.chat_model, request, time, limit_s, action.tries)
        await event_log.write(*plan_events(action.kind, planned))
        stored = await self._memory.put(action.step, planned)
        if stored.plan != planned.plan:
            await event_log.write(*plan_events(action.kind, stored))
        return await self._planned(action, stored)

    async def resolve_documents(self, action: ResolveDocuments) -> Observation:
        """Which documents the plan is about."""
        request = await self._memory.request()
        time = self._note_time(StepTime(self._services.settings, request))
        event_log = await self._open()
        documents = self._searches.documents(request)
        resolving = resolve_step(action, self._memory, documents, event_log)
        stored = await resolved_in_time(action, self._memory, resolving, time)
        return await self._planned(action, stored)

    async def ask_user(self, action: AskUser) -> Observation:
        """Show the options; the answer is waited for by the driver."""
        await ask_step(action, self._memory, self._services, await self._open())
        return self._asked()

    async def take_answer(self, action: TakeAnswer) -> Observation:
        """Go on with what was answered."""
        stored = await take_step(action, self._memory, self._services, await self._open())
        return await self._planned(action, stored)

    async def find_documents(self, action: FindDocuments) -> Observation:
        """Documents by metadata."""

        async def search(request: RunRequest, stored: StoredPlan, _: StepTime) -> Evidence:
            return await gather_documents(request, stored, self._searches.documents(request))

        return await self._gather(action, "rag_list_documents", search)

    async def retrieve_blocks(self, action: RetrieveBlocks) -> Observation:
        """Blocks by content."""

        async def search(request: RunRequest, stored: StoredPlan, time: StepTime) -> Evidence:
            return await gather_blocks(
                request,
                stored,
                (self._searches.blocks(request, time), self._searches.documents(request)),
                top_k=self._services.settings.answering.answer_blocks,
                widened=action.widened,
                attempt=action.attempt,
            )

        return await self._gather(action, "rag_semantic_search", search)

    async def refine_evidence(self, action: RefineEvidence) -> Observation:
        """The best evidence first, without what does not help."""
        stored = await self._memory.get(action.plan_step, StoredPlan)
        evidence = await self._memory.get(action.evidence_step, Evidence)
        time = self._note_time(StepTime(self._services.settings, await self._memory.request(), stored))
        passages = {"passages": len(evidence.hits)}
        event_log = await self._open(ToolStartedEvent(tool="rerank", arguments=passages))
        refined = await refine(
            stored.plan.standalone_question,
            evidence,
            self._services.chat_model,
            lambda: time.limits("refine", self._services.settings.answering.plan_timeout_s),
        )
        await event_log.write(tool_result("rerank", evidence_found(refined)))
        return evidence_found(await self._memory.put(action.step, refined))

    async def write_answer(self, action: WriteAnswer) -> Observation:
        """The answer, streamed; or who is to work on it first."""
        step = WritingStep(
            action=action,
            services=self._services,
            memory=self._memory,
            searches=self._searches,
            open_event_log=self._open,
            is_repeated=self._is_repeated,
            tokens=self._tokens,
            note_time=self._note_time,
        )
        return await step.perform()

    async def commit_answer(self, action: CommitAnswer) -> Observation:
        """Store the answer, then send COMPLETE."""
        answer = await self._memory.get(action.answer_step, RunAnswer)
        event_log = await self._open()
        # A second answer that failed half-way has withdrawn the first, which is committed after all. That
        # nobody wrote between the reading of the log and the mark of this attempt, the mark's append proves.
        shown = self._written and shown_text(events_of(self._written), action.answer_step)
        if event_log.met_others or shown != answer.text:
            await show_stored(self._services.run_log, answer, action.answer_step)
        await commit_answer(answer, action, self._services, event_log)
        return RunClosed()

    async def report_failure(self, action: ReportFailure) -> Observation:
        """Store the failure, then send ERROR."""
        await report_failure(self._run_id, action, self._services, await self._open())
        return RunClosed()

    async def discard(self, error_type: str) -> None:
        """Tell readers to forget what this step sent."""
        if self._event_log is not None:
            # When the log itself is out of reach, the next attempt's `restarted` says the same.
            with suppress(GroundworkError):
                await self._event_log.write(DiscardedStatus(error_type=error_type))

    async def _gather(
        self,
        action: FindDocuments | RetrieveBlocks,
        tool: str,
        search: Callable[[RunRequest, StoredPlan, StepTime], Awaitable[Evidence]],
    ) -> Observation:
        stored = await self._memory.get(action.plan_step, StoredPlan)
        request = await self._memory.request_for(stored)
        time = self._note_time(StepTime(self._services.settings, request, stored))
        attempt = action.attempt if isinstance(action, RetrieveBlocks) else 1
        arguments = {"query": phrasings(request, stored.plan, attempt)[0], "attempt": attempt}
        event_log = await self._open(ToolStartedEvent(tool=tool, arguments=arguments))
        evidence = await self._searches.in_time(lambda: search(request, stored, time), time, request)
        found = await self._found(action, evidence)
        told = tool_result(tool, found, success=not evidence.unfinished)
        await event_log.write(told, *warning_events(evidence.warnings))
        kept = await self._memory.put(action.step, evidence)
        if kept == evidence:
            return found
        found = await self._found(action, kept)
        await event_log.write(tool_result(tool, found))
        return found

    async def _planned(
        self, action: MakePlan | ResolveDocuments | TakeAnswer, stored: StoredPlan
    ) -> Observation:
        if isinstance(action, ResolveDocuments):
            return DocumentsResolved(document_count=len(stored.doc_ids), is_ambiguous=bool(stored.options))
        if isinstance(action, TakeAnswer):
            return AnswerTaken(is_choice=stored.is_choice)
        return PlanMade(
            query_type=stored.plan.query_type,
            intent=stored.plan.intent,
            todo=todo_items(stored.plan),
            names_documents=names_documents(await self._memory.request(), stored.plan),
            max_attempts=self._services.settings.answering.max_retrieval_attempts,
            refines=self._services.settings.answering.refine_evidence,
        )

    def _asked(self) -> UserAsked:
        return UserAsked(timeout_s=self._services.settings.answering.clarification_timeout_s)

    async def _found(
        self, action: FindDocuments | RetrieveBlocks | RefineEvidence, evidence: Evidence
    ) -> EvidenceFound:
        seen_step = action.seen_step if isinstance(action, RetrieveBlocks) else 0
        seen = await self._memory.get(seen_step, Evidence) if seen_step else None
        return evidence_found(evidence, seen, hurried=self._time is not None and self._time.left.is_short)

    async def _shown(self, action: WriteAnswer, answer: RunAnswer) -> AnswerWritten:
        await show_stored(self._services.run_log, answer, action.step)
        return answer_written(answer)

    async def _log(self) -> LogSlice | None:
        """The log so far; None when it cannot be read: whoever needs it will be told why."""
        with suppress(GroundworkError):
            return await self._services.run_log.read(self._run_id)
        return None

    async def _open(self, *then: RunEvent) -> EventLog:
        """Begin this attempt in the log, with its first events."""
        if self._action.todo and not isinstance(self._action, CommitAnswer):  # COMPLETE carries that one
            then = (TodoListStatus(state="progress", todo=self._action.todo), *then)
        self._event_log = await open_event_log(
            self._services.run_log, self._run_id, self._action.step, self._written, then
        )
        return self._event_log

    @property
    def _is_repeated(self) -> bool:
        """Whether an earlier attempt at this step stands in the log, or may: the log could not be read."""
        events = events_of(self._written) if self._written else []
        return self._written is None or any(event.step == self._action.step for event in events)

    def _note_time(self, time: StepTime) -> StepTime:
        self._time = time
        return time
