"""The first step of a run. It plans the question while a search for its original wording is already running.

The plan itself answers small talk. If the question names an ambiguous document, the user is asked, and
`take_answer` continues with the choice. Otherwise the evidence is gathered and stored with the plan.
"""

import asyncio
import json
from datetime import UTC, datetime

from shared.answering.clarification import clarifying_question
from shared.answering.clarification_steps import ask_user, expires_at, with_choice
from shared.answering.document_references import not_in_evidence
from shared.answering.found_documents import DESCRIBING_S
from shared.answering.listing import gather_documents
from shared.answering.models import Preparation, Turn
from shared.answering.named_documents import resolve_documents, with_every
from shared.answering.planning import default_plan, names_documents, plan_or_default, todo_items
from shared.answering.prompt import DOCUMENT_QUESTIONS
from shared.answering.question_files import NO_FILES, files_in_question
from shared.answering.question_search import QuestionSearch
from shared.answering.step_context import StepContext
from shared.answering.steps import (
    AnswerWritten,
    FilesUnread,
    Observation,
    Prepare,
    Prepared,
    TakeAnswer,
    UserAsked,
)
from shared.conversations.window import cited_before
from shared.evidence.messages import messages_in
from shared.evidence.reader_text import readable, readable_line
from shared.platform.concurrency import run_together
from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.platform.language_models.models import CallLimits
from shared.platform.telemetry import get_logger
from shared.retrieval.block_reading import BlockLookup
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
from shared.runs.plan import QuestionPlan, start_ready
from shared.runs.step_time import StepTime
from shared.tools.execution import describe_documents
from shared.tools.registry import Binding, tools_of
from shared.tools.searches import caller_limits
from shared.tools.semantic_search import SemanticSearch
from shared.tools.table_tools import describe_table

# Maximum number of tables in the first prompt. A wide table takes 2,000 tokens. Not measured.
_MAX_TABLES = 5
# Time limit for resolving references with a few searches by name. Each usually takes 20 ms.
_RESOLVE_S = 15.0


async def prepare(context: StepContext, action: Prepare) -> Observation:
    """Plan the question and gather its evidence, answer small talk, or ask for clarification."""
    request = await context.request()
    files = await files_in_question(request, context.services) if request.has_files else NO_FILES
    if (delay_s := files.delay_s(request, datetime.now(UTC))) is not None:
        return await _wait_for_files(context, action, delay_s)
    default_stored = files.plan_after_wait(request, datetime.now(UTC)) if action.step > 1 else None
    time = context.time_of(request, default_stored)
    thought = ThoughtEvent(text="Reading the question and deciding how to answer it.", code="planning")
    if SemanticSearch.name not in tools_of(request.agent, context.services.settings):
        await context.open(thought)
        return await _skip_search(context, default_stored or StoredPlan(plan=default_plan(request.question)))
    search = _search(context, request, time)
    try:
        event_log = await context.open(thought)
        limit_s = context.services.settings.answering.plan_timeout_s
        stored = await plan_or_default(
            context.services.chat_model, request, time, limit_s, action.tries, files=files.names
        )
        stored = files.added_to(stored, default_stored.resumed_at if default_stored else None)
        plan = stored.plan
        event_log.stage(
            ActionEvent(kind="make_plan", query_type=plan.query_type, intent=plan.intent),
            TodoListStatus(state="done", todo=start_ready(todo_items(plan))),
            *warning_events(stored.warnings),
        )
        if plan.query_type == "CONVERSATION" and request.proof_is_optional:
            # Here the instructions of the agent determine the reply, rather than the plan.
            return await _skip_search(context, stored)
        if plan.query_type == "CONVERSATION" and plan.reply.strip():
            return await _reply(context, plan)
        if names_documents(request, plan, has_files=bool(stored.files)):
            await event_log.write()
            stored = await _resolve(context, request, stored, time, event_log)
        if stored.options:
            return await _ask_which(context, request, stored)
        return await _gather(context, request, stored, search, event_log)
    finally:
        search.stop()


async def _ask_which(context: StepContext, request: RunRequest, stored: StoredPlan) -> Observation:
    """Ask the user which of the candidate documents is meant, and store the plan until the reply arrives."""
    question = clarifying_question(stored.plan.language, readable_line(stored.reference), len(stored.options))
    clarification = Clarification(question=question, options=stored.options, expires_at=expires_at(context))
    preparation = Preparation(stored=stored)
    await context.keep(preparation, "preparation")
    return await ask_user(
        context, request, clarification, _observation(context, preparation, clarification.expires_at)
    )


async def take_answer(context: StepContext, action: TakeAnswer) -> Observation:
    """Search the documents that the user chose in a clarification, with the permissions of that user."""
    preparation = await context.journal.get(action.ask_step, Preparation, "preparation")
    event_log = await context.open()
    stored = await with_choice(context, action, preparation.stored, event_log)
    request = (await context.request()).with_rights_of(stored.asker)
    search = _search(context, request, context.time_of(request, stored))
    try:
        return await _gather(context, request, stored, search, event_log)
    finally:
        search.stop()


async def _wait_for_files(context: StepContext, action: Prepare, delay_s: float) -> Observation:
    """End this attempt, because attached files are still being read. The script repeats the step after
    `delay_s` seconds, and no worker is blocked meanwhile.
    """
    thought = ThoughtEvent(text="Waiting until the conversation's files have been read.", code="files")
    return await context.complete(FilesUnread(delay_s=delay_s), *([thought] if action.step == 1 else []))


def _search(context: StepContext, request: RunRequest, time: StepTime) -> QuestionSearch:
    return QuestionSearch(
        request,
        context.searches.blocks(request, time),
        context.searches.documents(request),
        context.searches.whole_documents(request),
    )


async def _reply(context: StepContext, plan: QuestionPlan) -> Observation:
    """Complete the step with an answer to small talk, which is part of the plan."""
    text = readable(plan.reply.strip())
    answer = RunAnswer(run_id=context.run_id, text=text, language=plan.language)
    await context.keep(Turn(said=text, answer=answer, is_last=True), "turn")
    return await context.complete(AnswerWritten(abstained=False), TokenEvent(text=text))


async def _skip_search(context: StepContext, stored: StoredPlan) -> Observation:
    """Complete the step without evidence, because the agent has no search or the question needs no
    documents.
    """
    preparation = Preparation(stored=stored, evidence=Evidence())
    await context.keep(preparation, "preparation")
    return await context.complete(_observation(context, preparation))


async def _resolve(
    context: StepContext, request: RunRequest, stored: StoredPlan, time: StepTime, event_log: EventLog
) -> StoredPlan:
    """Return the plan with the documents that its references mean, or with options if they are ambiguous.

    After a timeout, the plan stays without them and gets a warning.
    """
    try:
        async with asyncio.timeout(time.seconds("resolve", _RESOLVE_S)):
            resolved = await resolve_documents(request, stored, context.searches.documents(request))
    except (TimeoutError, CallTimeoutError):
        warning = messages_in(stored.plan.language).searches_late
        return stored.model_copy(update={"warnings": (*stored.warnings, warning)})
    if resolved.options:
        await event_log.write(ActionEvent(kind="resolve_documents", options=len(resolved.options)))
    else:
        await event_log.write(ActionEvent(kind="resolve_documents", documents=len(resolved.doc_ids)))
    return resolved


async def _gather(
    context: StepContext,
    request: RunRequest,
    stored: StoredPlan,
    search: QuestionSearch,
    event_log: EventLog,
) -> Observation:
    time = context.time_of(request, stored)
    lists = stored.plan.query_type in DOCUMENT_QUESTIONS
    tool = "rag_list_documents" if lists else "rag_semantic_search"
    await event_log.write(ToolStartedEvent(tool=tool, arguments={"query": stored.plan.standalone_question}))

    words = messages_in(stored.plan.language)
    evidence = await context.searches.in_time(
        lambda: _find(context, request, stored, search), time, request, words
    )
    evidence = evidence.model_copy(update={"missing": not_in_evidence(stored.missing, evidence)})
    preparation = Preparation(stored=stored, evidence=evidence)
    await context.keep(preparation, "preparation")
    return await context.complete(
        _observation(context, preparation),
        ToolResultEvent(
            tool=tool,
            success=not evidence.unfinished,
            result_count=len(evidence.hits) or len(evidence.records),
            top_score=round(top_score([hit.score for hit in evidence.hits]), 4),
        ),
        *warning_events(evidence.warnings),
    )


async def _find(
    context: StepContext, request: RunRequest, stored: StoredPlan, search: QuestionSearch
) -> Evidence:
    """Return the evidence for a question: a list of documents, or passages with the tables that can be
    queried.
    """
    documents = context.searches.documents(request)
    if stored.names_only_missing:
        return Evidence()
    if stored.plan.query_type in DOCUMENT_QUESTIONS:
        return await gather_documents(request, stored, documents)
    evidence, cited, tables = await run_together(
        search.evidence(stored, context.services.settings.answering),
        _cited_before(context, request),
        _tables(context, request, stored),
    )
    records = evidence.records
    if evidence.hits:  # evidence that has records but no hits would count as a list of documents
        known = {record.doc_id: record for record in records}
        records = tuple((await describe_documents(cited, known, documents, DESCRIBING_S)).values())
    update = {"cited_before": tuple(cited), "records": records, "tables": tables}
    every = await documents.get_many(stored.every_ids)
    return with_every(evidence.model_copy(update=update), stored, every, messages_in(stored.plan.language))


async def _cited_before(context: StepContext, request: RunRequest) -> list[Hit]:
    """Return the blocks cited by the latest answer with citations in this thread, as far as the user may read
    them.
    """
    before = cited_before(request.conversation)
    if before is None or not before.block_ids:
        return []
    within = render_filters(caller_limits(request), BLOCK_FIELDS)
    index = SecuredIndex(
        context.services.content_index, request.user, context.services.documents, within=within
    )
    try:
        return await BlockLookup(index).get_many(before.block_ids)
    except GroundworkError as failed:
        get_logger().warning("citations.read_failed", run_id=context.run_id, error_type=failed.code)
        return []


async def _tables(context: StepContext, request: RunRequest, stored: StoredPlan) -> tuple[TableCard, ...]:
    """Return the tables that the question may need for calculations: those of the named documents, then
    search results.
    """
    if not stored.plan.needs_tables:
        return ()
    services = context.services
    lookup = Binding(services, request.user, caller_limits(request)).tables
    limits = CallLimits(timeout_s=services.settings.search.timeout_s)
    question = stored.plan.standalone_question or request.question
    try:
        of_documents, similar = await run_together(
            lookup.of_documents(stored.doc_ids), lookup.search(question, services.embedder, limits)
        )
    except GroundworkError as failed:  # not fatal, because the model can search for tables with its tools
        get_logger().warning("tables.search_failed", run_id=context.run_id, error_type=failed.code)
        return ()
    tables = list({table.table_id: table for table in (*of_documents, *similar)}.values())[:_MAX_TABLES]
    return tuple(
        TableCard(
            doc_id=table.doc_id,
            version=table.version,
            text=json.dumps(describe_table(table), ensure_ascii=False),
        )
        for table in tables
    )


def _observation(
    context: StepContext, preparation: Preparation, expires_at: datetime | None = None
) -> Observation:
    """Return the observation of the step: `UserAsked` if a question to the user expires at `expires_at`,
    otherwise `Prepared`.
    """
    plan, evidence = preparation.stored.plan, preparation.evidence
    todo = todo_items(plan)
    if expires_at is not None:
        return UserAsked(query_type=plan.query_type, intent=plan.intent, todo=todo, expires_at=expires_at)
    settings, evidence = context.services.settings.answering, evidence or Evidence()
    return Prepared(
        query_type=plan.query_type,
        intent=plan.intent,
        todo=todo,
        found_count=len(evidence.hits) or len(evidence.records) or len(evidence.tables),
        max_looks=settings.max_retrieval_attempts,
        max_turns=settings.max_agent_turns,
    )
