"""The first step of a run: plan the question, and search for it as it was asked at the same time.

Small talk is answered by the plan itself. If a document that the question names is ambiguous, the person is
asked, and `take_answer` continues with the choice. Otherwise the evidence is found and stored with the plan.
"""

import asyncio
import json

from shared.answering.attempt import StepAttempt
from shared.answering.clarification import question_back
from shared.answering.clarification_steps import ask_user, expires_at, with_choice
from shared.answering.listing import gather_documents
from shared.answering.models import Preparation, Turn
from shared.answering.planning import default_plan, names_documents, plan_or_default, todo_items
from shared.answering.prompt import DOCUMENT_QUESTIONS
from shared.answering.retrieval import QuestionSearch, resolve_documents
from shared.answering.steps import AnswerWritten, Observation, Prepare, Prepared, TakeAnswer, UserAsked
from shared.conversations.window import cited_before
from shared.evidence.messages import messages_in
from shared.evidence.reader_text import readable, readable_line
from shared.platform.concurrency import run_together
from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.platform.language_models.models import CallLimits
from shared.platform.telemetry import get_logger
from shared.retrieval.blocks import BlockLookup
from shared.retrieval.filters import BLOCK_FIELDS, render_filters
from shared.retrieval.fusion import top_score
from shared.retrieval.models import Hit
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.event_log import EventLog
from shared.runs.events import (
    ActionEvent,
    ThoughtEvent,
    TodoListStatus,
    TokenEvent,
    ToolResultEvent,
    ToolStartedEvent,
    warning_events,
)
from shared.runs.evidence import Evidence, StoredPlan, TableCard
from shared.runs.models import Clarification, RunAnswer, RunRequest
from shared.runs.plan import QuestionPlan, started
from shared.runs.step_time import StepTime
from shared.tools.registry import Binding, tools_of
from shared.tools.searches import caller_limits
from shared.tools.semantic_search import SemanticSearch
from shared.tools.table_tools import described_table

_MAX_TABLES = 5  # in the first prompt; a wide one takes 2,000 tokens; unmeasured
_RESOLVE_S = 15.0  # a few searches for names: they take 20 ms


async def known(attempt: StepAttempt) -> Observation | None:
    """What an earlier attempt at the step brought."""
    answered = await attempt.memory.find(attempt.action.step, Turn, "turn")
    if answered is not None:
        await attempt.show_stored(answered.answer, attempt.action.step)
        return AnswerWritten(abstained=False)
    stored = await attempt.memory.find(attempt.action.step, Preparation)
    return None if stored is None else _observed(attempt, stored)


async def prepare(attempt: StepAttempt, action: Prepare) -> Observation:
    """Plan the question and find its evidence, answer small talk, or ask back."""
    request = await attempt.memory.request()
    time = attempt.time_of(request)
    thought = ThoughtEvent(text="Reading the question and deciding how to answer it.", code="planning")
    if SemanticSearch.name not in tools_of(request.agent, attempt.services.settings):
        await attempt.open(thought)
        return await _unsearched(attempt, StoredPlan(plan=default_plan(request.question)))
    search = _search(attempt, request, time)
    try:
        event_log = await attempt.open(thought)
        limit_s = attempt.services.settings.answering.plan_timeout_s
        stored = await plan_or_default(attempt.services.chat_model, request, time, limit_s, action.tries)
        plan = stored.plan
        await event_log.write(
            ActionEvent(kind="make_plan", query_type=plan.query_type, intent=plan.intent),
            TodoListStatus(state="done", todo=started(todo_items(plan))),
            *warning_events(stored.warnings),
        )
        if plan.query_type == "CONVERSATION" and request.proof_is_optional:
            return await _unsearched(attempt, stored)  # the agent answers in its own words
        if plan.query_type == "CONVERSATION" and plan.reply.strip():
            return await _reply(attempt, plan, event_log)
        if names_documents(request, plan):
            stored = await _resolved(attempt, request, stored, time, event_log)
        if stored.options:
            question = question_back(
                stored.plan.language, readable_line(stored.reference), len(stored.options)
            )
            asked = Clarification(question=question, options=stored.options, expires_at=expires_at(attempt))
            await ask_user(attempt, request, asked, event_log)
            return _observed(attempt, await attempt.memory.put(action.step, Preparation(stored=stored)))
        return await _found(attempt, request, stored, search, event_log)
    finally:
        search.stop()


async def take_answer(attempt: StepAttempt, action: TakeAnswer) -> Observation:
    """Go on with the documents that were chosen, with the rights of the person who chose."""
    asked = await attempt.memory.get(action.ask_step, Preparation)
    event_log = await attempt.open()
    stored = await with_choice(attempt, action, asked.stored, event_log)
    request = (await attempt.memory.request()).with_rights_of(stored.asker)
    search = _search(attempt, request, attempt.time_of(request, stored))
    try:
        return await _found(attempt, request, stored, search, event_log)
    finally:
        search.stop()


def _search(attempt: StepAttempt, request: RunRequest, time: StepTime) -> QuestionSearch:
    return QuestionSearch(
        request,
        attempt.searches.blocks(request, time),
        attempt.searches.documents(request),
        attempt.searches.whole_documents(request),
    )


async def _reply(attempt: StepAttempt, plan: QuestionPlan, event_log: EventLog) -> Observation:
    """Answer what is no question to the documents."""
    text = readable(plan.reply.strip())
    answer = RunAnswer(run_id=attempt.run_id, text=text, language=plan.language)
    await event_log.write(TokenEvent(text=text))
    turn = Turn(said=text, answer=answer, is_last=True)
    kept = await attempt.memory.put(attempt.action.step, turn, "turn")
    if kept.answer != answer:
        await attempt.show_stored(kept.answer, attempt.action.step)
    return AnswerWritten(abstained=False)


async def _unsearched(attempt: StepAttempt, stored: StoredPlan) -> Observation:
    """The model begins without documents: the agent has no search, or this is no question to documents."""
    preparation = Preparation(stored=stored, evidence=Evidence())
    return _observed(attempt, await attempt.memory.put(attempt.action.step, preparation))


async def _resolved(
    attempt: StepAttempt, request: RunRequest, stored: StoredPlan, time: StepTime, event_log: EventLog
) -> StoredPlan:
    """Which documents the plan is about; the plan without them, with a warning, when that takes too long."""
    try:
        async with asyncio.timeout(time.seconds("resolve", _RESOLVE_S)):
            resolved = await resolve_documents(request, stored, attempt.searches.documents(request))
    except (TimeoutError, CallTimeoutError):
        warning = messages_in(stored.plan.language).searches_late
        return stored.model_copy(update={"warnings": (*stored.warnings, warning)})
    if resolved.options:
        await event_log.write(ActionEvent(kind="resolve_documents", options=len(resolved.options)))
    else:
        await event_log.write(ActionEvent(kind="resolve_documents", documents=len(resolved.doc_ids)))
    return resolved


async def _found(
    attempt: StepAttempt,
    request: RunRequest,
    stored: StoredPlan,
    search: QuestionSearch,
    event_log: EventLog,
) -> Observation:
    time = attempt.time_of(request, stored)
    lists = stored.plan.query_type in DOCUMENT_QUESTIONS
    tool = "rag_list_documents" if lists else "rag_semantic_search"
    await event_log.write(ToolStartedEvent(tool=tool, arguments={"query": stored.plan.standalone_question}))

    async def find() -> Evidence:
        if stored.names_only_missing:
            return Evidence()
        if lists:
            return await gather_documents(request, stored, attempt.searches.documents(request))
        found, cited, tables = await run_together(
            search.evidence(stored, attempt.services.settings.answering),
            _cited_before(attempt, request),
            _tables(attempt, request, stored),
        )
        return found.model_copy(update={"cited_before": tuple(cited), "tables": tables})

    words = messages_in(stored.plan.language)
    evidence = await attempt.searches.in_time(find, time, request, words)
    evidence = evidence.model_copy(update={"missing": stored.missing})
    await event_log.write(
        ToolResultEvent(
            tool=tool,
            success=not evidence.unfinished,
            result_count=len(evidence.hits) or len(evidence.records),
            top_score=round(top_score([hit.score for hit in evidence.hits]), 4),
        ),
        *warning_events(evidence.warnings),
    )
    preparation = Preparation(stored=stored, evidence=evidence)
    return _observed(attempt, await attempt.memory.put(attempt.action.step, preparation))


async def _cited_before(attempt: StepAttempt, request: RunRequest) -> list[Hit]:
    """What the newest answer that cited anything showed, as far as it may be read now."""
    before = cited_before(request.conversation)
    if before is None or not before.block_ids:
        return []
    within = render_filters(caller_limits(request), BLOCK_FIELDS)
    index = SecuredIndex(
        attempt.services.content_index, request.user, attempt.services.documents, within=within
    )
    try:
        return await BlockLookup(index).get_many(before.block_ids)
    except GroundworkError as failed:
        get_logger().warning("citations.read_failed", run_id=attempt.run_id, error_type=failed.code)
        return []


async def _tables(attempt: StepAttempt, request: RunRequest, stored: StoredPlan) -> tuple[TableCard, ...]:
    """The tables that a question may be calculated from: those of its documents, then others."""
    if not stored.plan.needs_tables:
        return ()
    services = attempt.services
    lookup = Binding(services, request.user, caller_limits(request)).tables
    limits = CallLimits(timeout_s=services.settings.search.timeout_s)
    question = stored.plan.standalone_question or request.question
    try:
        named, found = await run_together(
            lookup.of_documents(stored.doc_ids), lookup.search(question, services.embedder, limits)
        )
    except GroundworkError as failed:  # its tools can still look for them
        get_logger().warning("tables.search_failed", run_id=attempt.run_id, error_type=failed.code)
        return ()
    tables = list({table.table_id: table for table in (*named, *found)}.values())[:_MAX_TABLES]
    return tuple(
        TableCard(doc_id=table.doc_id, text=json.dumps(described_table(table), ensure_ascii=False))
        for table in tables
    )


def _observed(attempt: StepAttempt, preparation: Preparation) -> Observation:
    plan, evidence = preparation.stored.plan, preparation.evidence
    settings = attempt.services.settings.answering
    if evidence is None:
        return UserAsked(
            query_type=plan.query_type,
            intent=plan.intent,
            todo=todo_items(plan),
            answer_timeout_s=settings.clarification_timeout_s,
        )
    return Prepared(
        query_type=plan.query_type,
        intent=plan.intent,
        todo=todo_items(plan),
        found_count=len(evidence.hits) or len(evidence.records) or len(evidence.tables),
        max_looks=settings.max_retrieval_attempts,
        max_turns=settings.max_agent_turns,
    )
