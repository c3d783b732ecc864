"""Acting: performs one decided step and says what it saw. Both drivers run their steps through here."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, assert_never

from shared.agents.closing import commit_answer, report_failure
from shared.agents.gathering import gather_blocks, gather_documents
from shared.agents.journal import (
    Journal,
    RunClosedError,
    StaleAttemptError,
    open_journal,
    run_is_closed,
)
from shared.agents.planning import plan_question, todo_items
from shared.agents.synthesis import write_answer
from shared.agents.working_memory import WorkingMemory
from shared.core.confidence import score_spread, top_score
from shared.errors import CallTimeoutError, GroundworkError
from shared.models.plan import QuestionPlan
from shared.models.prompts import CallLimits
from shared.models.runs import RunAnswer, RunRequest
from shared.models.steps import (
    AnswerWritten,
    CommitAnswer,
    EvidenceFound,
    FindDocuments,
    MakePlan,
    Observation,
    PlanMade,
    ReportFailure,
    RetrieveBlocks,
    RunClosed,
    StepAction,
    StepFailed,
    StepInput,
    WriteAnswer,
)
from shared.models.working import Evidence, StoredPlan
from shared.retrieval.blocks import BlockSearch
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.services import Services
from shared.telemetry import get_logger

_LATER_ATTEMPT_POLL_S = 0.5
_LATER_ATTEMPT_TRIES = 240  # two minutes: longer than an answer may take


async def perform(step_input: StepInput, services: Services) -> Observation:
    """Perform one step of a run. Expected failures come back as `StepFailed`; defects are raised.

    May run twice for the same step after a crash: what the first attempt finished is not done again, what it
    left half done is marked in the run log and done anew.
    """
    run = StepRun(services, step_input)
    action = step_input.action
    performers: Mapping[type, Callable[[Any], Awaitable[Observation]]] = {
        MakePlan: run.make_plan,
        FindDocuments: run.find_documents,
        RetrieveBlocks: run.retrieve_blocks,
        WriteAnswer: run.write_answer,
        CommitAnswer: run.commit_answer,
        ReportFailure: run.report_failure,
    }
    try:
        return await run.known_result(action) or await performers[type(action)](action)
    except RunClosedError:
        return RunClosed()
    except StaleAttemptError:
        return await run.result_of_later_attempt(action)
    except GroundworkError as failed:
        get_logger().warning(
            "step.failed", run_id=step_input.run_id, error_type=failed.code, step=action.step
        )
        return await run.discard(failed)


class StepRun:
    """One attempt at one step, with the services bound to the run's user."""

    def __init__(self, services: Services, step_input: StepInput) -> None:
        self._services = services
        self._memory = WorkingMemory(services.blobs, step_input.run_id)
        self._run_id = step_input.run_id
        self._step = step_input.action.step
        self._journal: Journal | None = None

    async def known_result(self, action: StepAction) -> Observation | None:
        """What an earlier attempt brought, if one got to its end."""
        match action:
            case MakePlan():
                plan = await self._memory.find(action.step, StoredPlan)
                return None if plan is None else _planned(plan.plan)
            case FindDocuments() | RetrieveBlocks():
                evidence = await self._memory.find(action.step, Evidence)
                return None if evidence is None else _found(evidence)
            case WriteAnswer():
                answer = await self._memory.find(action.step, RunAnswer)
                return None if answer is None else _written(answer)
            case CommitAnswer() | ReportFailure():
                return RunClosed() if await run_is_closed(self._services.run_log, self._run_id) else None
            case _:
                assert_never(action)

    async def result_of_later_attempt(self, action: StepAction) -> Observation:
        """Wait for the attempt that took over: the first to answer ends the step, and this has nothing."""
        for _ in range(_LATER_ATTEMPT_TRIES):
            await asyncio.sleep(_LATER_ATTEMPT_POLL_S)
            known = await self.known_result(action)
            if known is not None:
                return known
        message = "Another attempt at this step began and did not end."
        return StepFailed(error_type=StaleAttemptError.code, message=message, retryable=True)

    async def make_plan(self, action: MakePlan) -> Observation:
        """Classify the question and write the todo list."""
        request = await self._memory.request()
        journal = await self._open()
        await journal.write("THOUGHT", text="Reading the question and deciding how to answer it.")
        plan = await plan_question(
            self._services.chat_model, request.question, self._limits("plan_timeout_s")
        )
        await journal.write_all(
            [
                ("ACTION", {"kind": action.kind, "query_type": plan.query_type, "intent": plan.intent}),
                ("STATUS", {"state": "done", "todo": _todo_json(plan)}),
            ]
        )
        await self._memory.put(action.step, StoredPlan(plan=plan))
        return _planned(plan)

    async def find_documents(self, action: FindDocuments) -> Observation:
        """Documents by metadata."""

        async def search(request: RunRequest, plan: QuestionPlan) -> Evidence:
            return await gather_documents(request, plan, self._documents(request))

        return await self._gather(action, "rag_list_documents", search)

    async def retrieve_blocks(self, action: RetrieveBlocks) -> Observation:
        """Blocks by content."""

        async def search(request: RunRequest, plan: QuestionPlan) -> Evidence:
            return await gather_blocks(
                request,
                plan,
                (self._blocks(request), self._documents(request)),
                top_k=self._services.settings.answer_blocks,
                widened=action.widened,
            )

        return await self._gather(action, "rag_semantic_search", search)

    async def write_answer(self, action: WriteAnswer) -> Observation:
        """The answer, streamed."""
        request = await self._memory.request()
        plan = (await self._memory.get(action.plan_step, StoredPlan)).plan
        evidence = await self._memory.get(action.evidence_step, Evidence)
        journal = await self._open()
        await journal.write("THOUGHT", text=_writing_thought(evidence))
        answer = await write_answer(
            request,
            plan,
            evidence,
            chat_model=self._services.chat_model,
            journal=journal,
            limits=CallLimits(
                timeout_s=self._services.settings.answer_timeout_s,
                max_output_tokens=self._services.settings.max_answer_tokens,
            ),
        )
        await self._memory.put(action.step, answer)
        return _written(answer)

    async def commit_answer(self, action: CommitAnswer) -> Observation:
        """Store the answer, then send COMPLETE."""
        answer = await self._memory.get(action.answer_step, RunAnswer)
        await commit_answer(answer, action.todo, self._services, await self._open())
        return RunClosed()

    async def report_failure(self, action: ReportFailure) -> Observation:
        """Store the failure, then send ERROR."""
        await report_failure(self._run_id, action, self._services, await self._open())
        return RunClosed()

    async def discard(self, failed: GroundworkError) -> StepFailed:
        """Tell readers to forget what this step sent, and describe the failure."""
        if self._journal is not None:
            # When the log itself is out of reach, the next attempt's `restarted` says the same.
            with suppress(GroundworkError):
                await self._journal.write("STATUS", state="discarded", error_type=failed.code)
        return StepFailed(
            error_type=failed.code,
            message=failed.detail,
            hints=failed.hints,
            # An answer that took too long once would take its whole time again.
            retryable=failed.retryable and not isinstance(failed, CallTimeoutError),
            retry_after_s=failed.retry_after_s,
        )

    async def _gather(
        self,
        action: FindDocuments | RetrieveBlocks,
        tool: str,
        search: Callable[[RunRequest, QuestionPlan], Awaitable[Evidence]],
    ) -> Observation:
        request = await self._memory.request()
        plan = (await self._memory.get(action.plan_step, StoredPlan)).plan
        journal = await self._open()
        await journal.write("TOOL_STARTED", tool=tool, arguments={"query": plan.standalone_question})
        evidence = await search(request, plan)
        found = _found(evidence)
        await journal.write(
            "TOOL_RESULT", tool=tool, success=True, result_count=found.hit_count, top_score=found.top_score
        )
        await self._memory.put(action.step, evidence)
        return found

    async def _open(self) -> Journal:
        self._journal = await open_journal(self._services.run_log, self._run_id, self._step)
        return self._journal

    def _blocks(self, request: RunRequest) -> BlockSearch:
        secured = SecuredIndex(self._services.content_index, request.user)
        return BlockSearch(secured, self._services.embedder, self._limits("search_timeout_s"))

    def _documents(self, request: RunRequest) -> DocumentSearch:
        return DocumentSearch(SecuredIndex(self._services.documents_index, request.user))

    def _limits(self, setting: str) -> CallLimits:
        return CallLimits(timeout_s=getattr(self._services.settings, setting))


def _planned(plan: QuestionPlan) -> PlanMade:
    return PlanMade(query_type=plan.query_type, intent=plan.intent, todo=todo_items(plan))


def _written(answer: RunAnswer) -> AnswerWritten:
    return AnswerWritten(
        abstained=answer.abstained,
        citation_count=len(answer.citations),
        unsupported_claims=answer.unsupported_claims,
    )


def _found(evidence: Evidence) -> EvidenceFound:
    scores = [hit.score for hit in evidence.hits]
    return EvidenceFound(
        hit_count=len(evidence.hits) or len(evidence.records),
        document_count=len({hit.doc_id for hit in evidence.hits}) or len(evidence.records),
        top_score=round(top_score(scores), 4),
        score_spread=round(score_spread(scores), 4),
        narrowed=evidence.narrowed,
    )


def _writing_thought(evidence: Evidence) -> str:
    if evidence.hits:
        documents = len({hit.doc_id for hit in evidence.hits})
        return f"Writing the answer from {len(evidence.hits)} passages of {documents} documents."
    if evidence.records:
        return f"Writing the answer from the descriptions of {len(evidence.records)} documents."
    return "Nothing was found; saying so."


def _todo_json(plan: QuestionPlan) -> list[dict[str, Any]]:
    return [item.model_dump(mode="json") for item in todo_items(plan)]
