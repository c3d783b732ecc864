"""One attempt at one step of a run, with the services bound to the run's user.

A result is stored once: of two attempts the first to store counts, and what readers see follows it.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import assert_never

from shared.answering.clarification_steps import ask_step, resolve_step, take_step
from shared.answering.loop import retry_delay_s
from shared.answering.planning import names_documents, plan_or_default, resolved_in_time, todo_items
from shared.answering.retrieval import gather_blocks, gather_documents, phrasings, refine
from shared.answering.run_end import commit_answer, report_failure
from shared.answering.services import AnsweringServices
from shared.answering.shown_answer import show_stored, shown_text
from shared.answering.steps import (
    AnswerTaken,
    AnswerWritten,
    AskUser,
    CommitAnswer,
    DelegationDeferred,
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
    SubagentsChosen,
    TakeAnswer,
    UserAsked,
    WriteAnswer,
    step_failed,
)
from shared.answering.synthesis import AnswerBrokenError, Task, answer_without_model, write_answer
from shared.platform.concurrency import run_together
from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.platform.language_models.models import CallLimits
from shared.platform.telemetry import get_logger
from shared.quality.run_quality import FiguresSeen, keep_facts, writing_facts
from shared.retrieval.fusion import score_spread, top_score
from shared.runs.event_log import EventLog, is_closed, open_event_log
from shared.runs.events import (
    ActionEvent,
    DiscardedStatus,
    RunEvent,
    ThoughtEvent,
    TodoListStatus,
    ToolResultEvent,
    ToolStartedEvent,
    events_of,
    warning_events,
)
from shared.runs.log_lines import LogSlice
from shared.runs.models import Clarification, RunAnswer, RunRequest
from shared.runs.plan import started
from shared.runs.step_time import StepTime
from shared.runs.working_memory import Evidence, StoredPlan, WorkingMemory
from shared.subagents.artifacts import find_delegation
from shared.subagents.delegation import decide_delegation, starts_of
from shared.subagents.policy_input import DelegationRequest, installed_profiles
from shared.subagents.results import Collected, collect
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
        self._figures_available = 0  # pictures in what the answer was written from, and on its pages

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
            return await self._chosen_before(action)
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
        await event_log.write(*_plan_events(action.kind, planned))
        stored = await self._memory.put(action.step, planned)
        if stored.plan != planned.plan:
            await event_log.write(*_plan_events(action.kind, stored))
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
        await event_log.write(_tool_result("rerank", _evidence_found(refined)))
        return _evidence_found(await self._memory.put(action.step, refined))

    async def write_answer(self, action: WriteAnswer) -> Observation:
        """The answer, streamed; or the sub-agents that work on the question first.

        The delegation policy is asked first. With sub-agents, a later step writes from what they bring. A
        model that fails is asked once more while there is time; then what it has written stands, in whole
        sentences; else the passages are quoted.
        """
        stored = await self._memory.get(action.plan_step, StoredPlan)
        request = await self._memory.request_for(stored)
        evidence = await self._memory.get(action.evidence_step, Evidence)
        time = self._note_time(StepTime(self._services.settings, request, stored))
        if action.delegation_step:
            collected = await collect(self._memory, action.delegation_step, evidence, self._services)
            return await self._write(action, stored, collected, time, [])
        delegation_request = DelegationRequest(
            request,
            stored,
            evidence,
            failures=int(action.replaces > 0),
            step=action.step,
            repeated=self._is_repeated,
            tokens=self._tokens,
        )
        find = self._searches.documents(request).get_many
        decided = await decide_delegation(delegation_request, self._memory, self._services, find)
        if decided.starts and decided.until is not None:
            await self._open(decided.event)
            return SubagentsChosen(children=decided.starts, until=decided.until)
        if decided.defer_s is not None:
            await self._open(decided.event)
            return DelegationDeferred(delay_s=decided.defer_s)
        return await self._write(action, stored, Collected(evidence), time, [decided.event])

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
        told = _tool_result(tool, found, success=not evidence.unfinished)
        await event_log.write(told, *warning_events(evidence.warnings))
        kept = await self._memory.put(action.step, evidence)
        if kept == evidence:
            return found
        found = await self._found(action, kept)
        await event_log.write(_tool_result(tool, found))
        return found

    async def _write(
        self,
        action: WriteAnswer,
        stored: StoredPlan,
        collected: Collected,
        time: StepTime,
        first: Sequence[RunEvent],
    ) -> Observation:
        request = await self._memory.request_for(stored)
        task = Task(
            request=request,
            plan=stored.plan,
            evidence=collected.evidence,
            findings=collected.findings,
            proofs=collected.proofs,
            aside=collected.web,
            warnings=(*stored.warnings, *collected.evidence.warnings, *collected.warnings),
            organisation=self._services.settings.answering.organisation,
        )
        before = [DiscardedStatus(step=action.replaces, reason="abstained")] if action.replaces else []
        thought = ThoughtEvent(text=_writing_thought(collected.evidence))
        told = warning_events(collected.warnings)
        event_log = await self._open(*before, *first, *told, thought)
        answer, is_shown = await self._answer(action, task, event_log, time)
        answer = answer.model_copy(update={"sub_agents": collected.views})
        facts = writing_facts(event_log, stored.resumed_at or request.created_at, self._figures_available)
        kept, _ = await run_together(
            self._memory.put(action.step, answer), keep_facts(self._memory, action.step, facts)
        )
        # The first to be stored is what this attempt has shown; should another show its own, it repairs it.
        if kept is not answer or not is_shown:
            await show_stored(self._services.run_log, kept, action.step)
        return _answer_written(kept, hurried=time.left.is_short)

    async def _answer(
        self, action: WriteAnswer, task: Task, event_log: EventLog, time: StepTime
    ) -> tuple[RunAnswer, bool]:
        """The answer, and whether readers have it as it is.

        Raises:
            GroundworkError: the model failed, and may do better when it is asked once more, or there is an
                answer before this one.
        """
        is_shown = True
        try:
            answer = await self._ask_model(task, event_log, time)
        except AnswerBrokenError as broken:
            failed = step_failed(broken.failed, time.left.remaining_s)
            is_first = not action.replaces
            if retry_delay_s("write", action.tries, failed) is not None:
                raise broken.failed from broken
            if not (is_first or broken.partial):
                raise broken.failed from broken  # the first answer, that there is none, says more
            get_logger().warning("answer.degraded", run_id=self._memory.run_id, error_type=broken.failed.code)
            answer, is_shown = broken.partial or answer_without_model(task, broken.failed), False
        if new := [warning for warning in answer.warnings if warning not in task.warnings]:
            await event_log.write(*warning_events(new))
        return answer, is_shown

    async def _ask_model(self, task: Task, event_log: EventLog, time: StepTime) -> RunAnswer:
        settings = self._services.settings
        if not (time.left.may_write or task.is_empty):
            raise AnswerBrokenError(CallTimeoutError("The time for this question is over."), None)
        figures = FiguresSeen(self._searches.page_figures(task.request), task.evidence.hits)
        try:
            return await write_answer(
                task,
                chat_model=self._services.chat_model,
                event_log=event_log,
                time=time,
                limits=CallLimits(
                    timeout_s=settings.answering.answer_timeout_s,
                    max_output_tokens=settings.answering.max_answer_tokens,
                ),
                page_figures=figures,
            )
        finally:
            self._figures_available = figures.count

    async def _chosen_before(self, action: WriteAnswer) -> SubagentsChosen | None:
        """The sub-agents that an earlier attempt at the step chose; None when it chose none."""
        if action.delegation_step:
            return None
        known = await find_delegation(self._services.blobs, self._run_id, action.step)
        if known is None:
            return None
        settings = self._services.settings
        starts = starts_of(
            known.tasks,
            installed_profiles(self._services.web_search),
            settings.subagents.child_retry_count,
            settings.subagents.child_retry_backoff_ms,
        )
        return SubagentsChosen(children=starts, until=max(task.deadline for task in known.tasks))

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
        return _evidence_found(evidence, seen, hurried=self._time is not None and self._time.left.is_short)

    async def _shown(self, action: WriteAnswer, answer: RunAnswer) -> AnswerWritten:
        await show_stored(self._services.run_log, answer, action.step)
        return _answer_written(answer)

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


def _plan_events(kind: str, stored: StoredPlan) -> list[RunEvent]:
    """The classification, and the todo list with what is begun."""
    plan = stored.plan
    return [
        ActionEvent(kind=kind, query_type=plan.query_type, intent=plan.intent),
        TodoListStatus(state="done", todo=started(todo_items(plan))),
        *warning_events(stored.warnings),
    ]


def _tool_result(tool: str, found: EvidenceFound, *, success: bool = True) -> ToolResultEvent:
    """How much a tool found."""
    return ToolResultEvent(
        tool=tool, success=success, result_count=found.hit_count, top_score=found.top_score
    )


def _evidence_found(
    evidence: Evidence, seen: Evidence | None = None, *, hurried: bool = False
) -> EvidenceFound:
    """How much there is, how sure it is, and how much of it `seen` did not have."""
    scores = [hit.score for hit in evidence.hits]
    known = {hit.block_id for hit in seen.hits} if seen is not None else set()
    return EvidenceFound(
        hit_count=len(evidence.hits) or len(evidence.records),
        document_count=len({hit.doc_id for hit in evidence.hits}) or len(evidence.records),
        top_score=round(top_score(scores), 4),
        score_spread=round(score_spread(scores), 4),
        narrowed=evidence.narrowed,
        new_count=None if seen is None else len({hit.block_id for hit in evidence.hits} - known),
        hurried=hurried or evidence.unfinished,  # another look would come too late, too
    )


def _answer_written(answer: RunAnswer, *, hurried: bool = False) -> AnswerWritten:
    """How the answer came out."""
    return AnswerWritten(
        abstained=answer.abstained,
        citation_count=len(answer.citations),
        unsupported_claims=answer.unsupported_claims,
        hurried=hurried,
    )


def _writing_thought(evidence: Evidence) -> str:
    """What is about to be written from."""
    if evidence.hits:
        documents = len({hit.doc_id for hit in evidence.hits})
        return f"Writing the answer from {len(evidence.hits)} passages of {documents} documents."
    if evidence.records:
        return f"Writing the answer from the descriptions of {len(evidence.records)} documents."
    return "Nothing was found; saying so."
