"""Execution of a turn's requests: its tool calls, and a search for each of its gaps.

Each block is shown once, in `<documents>` as in the first search. All other results are shown as JSON.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from shared.answering.models import Gap, HeldResult, Turn, TurnResults
from shared.answering.services import AnsweringServices
from shared.answering.turn_question import TurnQuestion
from shared.evidence.document_prompt import documents_with_blocks
from shared.evidence.figures import MAX_FIGURES
from shared.evidence.models import TableResult
from shared.platform.concurrency import run_together
from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.platform.language_models.models import Message
from shared.platform.prompts import element, load
from shared.platform.search import Filters
from shared.platform.telemetry import get_logger
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.event_log import EventLog
from shared.runs.events import RunEvent, ToolResultEvent, ToolStartedEvent
from shared.runs.evidence import Evidence
from shared.runs.models import RunRequest
from shared.runs.step_time import StepTime
from shared.tools.base import Found, Tool
from shared.tools.delegate import Delegate
from shared.tools.execution import NOTHING_NEW, Called, carry_out, described, rendered, within
from shared.tools.outside import Outside
from shared.tools.registry import Binding, bound_tool, run_query_of
from shared.tools.searches import StepSearches, caller_limits
from shared.tools.table_tools import QueryStructuredData, is_computed

_GAP_BLOCKS = 6  # per gap; unmeasured
_MAX_RESULT_CHARS = 16_000  # per call, about 4,000 tokens
_TOOL_TIMEOUT_S = 30.0


async def look_up(
    turn: Turn,
    question: TurnQuestion,
    services: AnsweringServices,
    *,
    outside: Outside,
    time: StepTime,
    event_log: EventLog,
    held: Mapping[str, HeldResult],
) -> TurnResults:
    """Execute the tool calls of a turn and search for its gaps.

    Failures are returned as results for the model.

    Args:
        outside: rules for the use of the web.
        held: results of calls that the loop has already executed, by call id.
    """
    request, shown = question.request, question.shown
    limit_s = time.seconds("gather", _TOOL_TIMEOUT_S)
    # Includes at most two model calls that draft SQL.
    drafting_s = time.seconds("gather", max(_TOOL_TIMEOUT_S, services.settings.answering.answer_timeout_s))
    bind = partial(_bound, services, request, outside)
    calls = [item for item in turn.calls if item.call.call_id not in held]
    started = [
        ToolStartedEvent(tool=item.call.name, arguments=item.arguments)
        for item in calls
        if item.arguments is not None
    ]
    gaps_started = [
        ToolStartedEvent(tool="rag_semantic_search", arguments={"query": gap.missing}) for gap in turn.gaps
    ]
    if started or gaps_started:
        await event_log.write(*started, *gaps_started)
    called, of_gaps = await run_together(
        run_together(
            *(
                carry_out(item, bind, drafting_s if item.call.name == QueryStructuredData.name else limit_s)
                for item in calls
            )
        ),
        run_together(*(_search(gap, services, question, time, limit_s) for gap in turn.gaps)),
    )
    told: list[RunEvent] = [one.event for one in called]
    told += [
        ToolResultEvent(tool="rag_semantic_search", success=hits is not None, result_count=len(hits or ()))
        for hits in of_gaps
    ]
    if told:
        await event_log.write(*told)
    hits = [hit for one in called for hit in one.found.hits]
    hits += [hit for found in of_gaps for hit in found or ()]
    known = {record.doc_id: record for record in shown.records}
    known |= {record.doc_id: record for of_loop in held.values() for record in of_loop.records}
    known |= {record.doc_id: record for one in called for record in one.found.records}
    records = await described(hits, known, StepSearches(services).documents(request))
    numbered, tables = _numbered(called, sum(len(one.tables) for one in question.before.results))
    return _results(turn, numbered, held, of_gaps, records, shown=shown).model_copy(update={"tables": tables})


def _numbered(called: Sequence[Called], queried: int) -> tuple[list[Called], tuple[TableResult, ...]]:
    """Assign an id to each query result, by which the model cites it; return the calls and these results.

    `queried` is the number of query results that the run has already.
    """
    numbered: list[Called] = []
    tables: list[TableResult] = []
    for one in called:
        for noted in one.found.results:
            result_id = f"q{queried + len(tables) + 1}"
            tables.append(noted.model_copy(update={"result_id": result_id}))
            one = replace(one, result={"success": True, "result_id": result_id, **one.result})  # noqa: PLW2901
        numbered.append(one)
    return numbered, tuple(tables)


async def recomputed(
    result: TableResult, request: RunRequest, services: AnsweringServices, time: StepTime
) -> bool:
    """Return whether the query still returns the same result for the user; False if that can't be checked."""
    binding = Binding(services, request.user, caller_limits(request))
    try:
        async with asyncio.timeout(time.seconds("repair", _TOOL_TIMEOUT_S)):
            return await is_computed(result, binding.tables, run_query_of(binding))
    except (TimeoutError, GroundworkError) as failed:
        code = failed.code if isinstance(failed, GroundworkError) else CallTimeoutError.code
        get_logger().warning("table.recompute_failed", run_id=request.run_id, error_type=code)
        return False


def _results(
    turn: Turn,
    called: Sequence[Called],
    held: Mapping[str, HeldResult],
    of_gaps: Sequence[list[Hit] | None],
    records: Mapping[str, DocumentRecord],
    *,
    shown: Evidence,
) -> TurnResults:
    known = {hit.block_id for hit in shown.blocks}
    new: list[Hit] = []
    messages: list[Message] = []
    for one in called:
        text, fresh = rendered(one, known, records, _MAX_RESULT_CHARS)
        fresh += [hit for hit in one.found.figures if hit.block_id not in known]
        known |= {hit.block_id for hit in fresh}
        new += fresh
        messages.append(Message(role="tool", text=text, call_id=one.planned.call.call_id))
    for call_id, of_loop in held.items():
        messages.append(Message(role="tool", text=of_loop.text, call_id=call_id))
        fresh = [hit for hit in of_loop.hits if hit.block_id not in known]
        known |= {hit.block_id for hit in fresh}
        new += fresh
    not_searched = tuple(gap.missing for gap, hits in zip(turn.gaps, of_gaps, strict=True) if hits is None)
    if turn.gaps:
        of_all = [hit for hits in of_gaps for hit in hits or () if hit.block_id not in known]
        fresh = within(list({hit.block_id: hit for hit in of_all}.values()), _MAX_RESULT_CHARS)
        new += fresh
        documents = documents_with_blocks(fresh, records) if fresh else NOTHING_NEW
        parts = [documents, *(element("not_searched", missing) for missing in not_searched)]
        parts += [load("answering", "not_searched")] if not_searched else []
        messages.append(Message(role="user", text="\n".join([*parts, load("answering", "continue")])))
    named = {hit.doc_id for hit in new}.union(record.doc_id for one in called for record in one.found.records)
    return TurnResults(
        messages=tuple(messages),
        hits=tuple(new),
        figures=tuple(hit for one in called for hit in one.found.figures)[:MAX_FIGURES],
        records=tuple(record for doc_id, record in records.items() if doc_id in named),
        pages=tuple(page for one in called for page in one.found.snapshots),
        found_urls=tuple(page.url for one in called for page in one.found.pages),
        not_searched=not_searched,
    )


def _bound(
    services: AnsweringServices, request: RunRequest, outside: Outside, name: str, found: Found
) -> Tool:
    if name in services.own_tools:
        return services.own_tools[name]
    if name == Delegate.name:  # its arguments are invalid, otherwise the loop would have executed it
        return Delegate()
    return bound_tool(name, services, request.user, caller_limits(request), found, outside=outside)


def _limits(question: TurnQuestion) -> Filters:
    """Return the search limits for a gap: the caller's, and the documents named in the question."""
    limits = caller_limits(question.request)
    if question.collected.evidence.narrowed and question.stored.doc_ids:
        limits["doc_id"] = question.stored.doc_ids
    return limits


async def _search(
    gap: Gap,
    services: AnsweringServices,
    question: TurnQuestion,
    time: StepTime,
    limit_s: float,
) -> list[Hit] | None:
    """Return the best blocks for a gap, or None if the search failed."""
    request, limits = question.request, _limits(question)
    blocks = StepSearches(services).blocks(request, time)
    try:
        async with asyncio.timeout(limit_s):
            hits = await blocks.search([gap.missing], 2 * _GAP_BLOCKS, limits)
            return [hit for hit in hits if not hit.is_heading()][:_GAP_BLOCKS]
    except (TimeoutError, GroundworkError) as failed:
        code = failed.code if isinstance(failed, GroundworkError) else CallTimeoutError.code
        get_logger().warning("gap.search_failed", run_id=request.run_id, error_type=code)
        return None
