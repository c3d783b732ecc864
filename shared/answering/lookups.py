"""Executes the requests of a turn: its tool calls, and one search for each gap in the answer.

Each block is shown once, in `<documents>` as in the first search. All other results are shown as JSON.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from shared.answering.calls import CallMaker, CallResults, GapSearch
from shared.answering.models import Gap, ScriptCallResult, Turn, TurnResults
from shared.answering.profiles import main_profile
from shared.answering.services import AnsweringServices
from shared.answering.turn_question import TurnQuestion
from shared.evidence.document_prompt import documents_with_blocks
from shared.evidence.figures import MAX_FIGURES
from shared.evidence.models import TableResult
from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.platform.language_models.models import Message
from shared.platform.prompts import element, load
from shared.platform.search import Filters
from shared.platform.telemetry import get_logger
from shared.retrieval.fusion import KEYWORD_WEIGHT
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.event_log import EventLog
from shared.runs.events import RunEvent
from shared.runs.evidence import Evidence
from shared.runs.models import RunRequest
from shared.runs.provenance import Provenance
from shared.runs.step_time import StepTime
from shared.tools.base import Tool, ToolEvidence
from shared.tools.delegate import Delegate
from shared.tools.execution import NOTHING_NEW, within
from shared.tools.outside import Outside
from shared.tools.registry import Binding, bound_tool, run_query_of
from shared.tools.searches import StepSearches, caller_limits
from shared.tools.table_tools import QueryStructuredData, is_computed

# Maximum number of passages that the search for one gap adds to the evidence. Not measured.
_GAP_BLOCKS = 6
# In eight searches for gaps, the needed passages scored .47 to .63. A passage unrelated in meaning that
# matches the words best, such as "document" or "state", scores little more than KEYWORD_WEIGHT.
_LEAST_GAP_SCORE = KEYWORD_WEIGHT + 0.15
# Minimum score of a passage found for a gap, as a share of the best score among passages shown before. Not
# measured.
_NEAR_SHOWN = 0.75
# Maximum length of one tool result, about 4,000 tokens.
_MAX_RESULT_CHARS = 16_000
_TOOL_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class TurnLookup:
    """Executor of a turn's requests, with the user's permissions and within the time of the step.

    Attributes:
        question: the question with the evidence that the model has seen.
        outside: rules for the use of the web.
    """

    question: TurnQuestion
    services: AnsweringServices
    outside: Outside
    time: StepTime
    event_log: EventLog

    async def results_of(self, turn: Turn, script_results: Mapping[str, ScriptCallResult]) -> TurnResults:
        """Execute the tool calls of a turn and search for the gaps in its answer.

        Failures are returned as results for the model.

        Args:
            script_results: results of the calls that the script has performed, by call id.
        """
        evidence = self.question.shown
        script_records = [record for one in script_results.values() for record in one.records]
        known_records = (*evidence.records, *script_records)
        limit_s = self.time.seconds("gather", _TOOL_TIMEOUT_S)
        maker = self._call_maker(evidence, {record.doc_id: record for record in known_records}, limit_s)
        outcomes, gap_hits = await maker.make(
            [item for item in turn.calls if item.call.call_id not in script_results],
            [GapSearch(gap.missing, partial(self._search, gap, limit_s)) for gap in turn.gaps],
        )
        of_gaps = [hit for hits in gap_hits for hit in hits or ()]
        results = await maker.render(outcomes, of_gaps)
        used = Provenance.joined(
            (
                *(one.provenance for one in outcomes),
                Provenance.of(*of_gaps),
                *(Provenance.of(*result.hits, *result.records) for result in script_results.values()),
            )
        )
        turn_results = _results(turn, results, script_results, gap_hits, shown=evidence)
        return turn_results.model_copy(update={"provenance": used})

    def _call_maker(
        self, evidence: Evidence, records: Mapping[str, DocumentRecord], limit_s: float
    ) -> CallMaker:
        services = self.services
        # A table query needs more time, because it makes up to two model calls that draft SQL.
        drafting_s = self.time.seconds(
            "gather", max(_TOOL_TIMEOUT_S, services.settings.answering.answer_timeout_s)
        )

        async def send(events: Sequence[RunEvent]) -> None:
            await self.event_log.write(*events)

        return CallMaker(
            main_profile(self.question.request.agent).calls,
            bind=self._bind,
            send=send,
            limit_s=lambda name: drafting_s if name == QueryStructuredData.name else limit_s,
            documents=StepSearches(services).documents(self.question.request),
            describe_s=None,
            max_chars=_MAX_RESULT_CHARS,
            shown={hit.block_id for hit in evidence.blocks},
            records=records,
            queried=sum(len(results.tables) for results in self.question.before.results),
        )

    def _bind(self, name: str, evidence: ToolEvidence) -> Tool:
        """Return a tool that acts with the user's permissions and within the caller's limits."""
        services, request = self.services, self.question.request
        if name in services.own_tools:
            return services.own_tools[name]
        # called with invalid arguments; otherwise the script would have performed the delegation
        if name == Delegate.name:
            return Delegate()
        limits = caller_limits(request)
        return bound_tool(name, services, request.user, limits, evidence, outside=self.outside)

    async def _search(self, gap: Gap, limit_s: float) -> list[Hit] | None:
        """Search for a gap and return the best matching blocks, or None if the search failed."""
        question, request = self.question, self.question.request
        missing = question.collected.evidence.missing
        if any(document.reference.casefold() in gap.missing.casefold() for document in missing):
            # The gap is about a document that doesn't exist, so other documents don't contain the answer.
            return []
        blocks = StepSearches(self.services).blocks(request, self.time)
        try:
            async with asyncio.timeout(limit_s):
                hits = await blocks.search([gap.missing], 2 * _GAP_BLOCKS, _limits(question))
                # Without embeddings, all scores are lower, and the usual minimum would drop relevant hits.
                least = 0.0 if blocks.missed else _LEAST_GAP_SCORE
                shown_ids = {hit.block_id for hit in question.shown.blocks}
                return relevant_to_gap(hits, shown_ids, least)[:_GAP_BLOCKS]
        except (TimeoutError, GroundworkError) as failed:
            code = failed.code if isinstance(failed, GroundworkError) else CallTimeoutError.code
            get_logger().warning("gap.search_failed", run_id=request.run_id, error_type=code)
            return None


async def recomputed(
    result: TableResult, request: RunRequest, services: AnsweringServices, time: StepTime
) -> bool:
    """Repeat a table query and return whether its result is unchanged. Return False if it can't be
    repeated.
    """
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
    results: CallResults,
    script_results: Mapping[str, ScriptCallResult],
    gap_hits: Sequence[list[Hit] | None],
    *,
    shown: Evidence,
) -> TurnResults:
    collected = [one.evidence for one in results.called]
    new, messages, records = [*results.hits], [*results.messages], results.records
    shown_ids = {hit.block_id for hit in (*shown.blocks, *new)}
    for call_id, script_result in script_results.items():
        messages.append(Message(role="tool", text=script_result.text, call_id=call_id))
        fresh = [hit for hit in script_result.hits if hit.block_id not in shown_ids]
        shown_ids |= {hit.block_id for hit in fresh}
        new += fresh
    not_searched = tuple(gap.missing for gap, hits in zip(turn.gaps, gap_hits, strict=True) if hits is None)
    if turn.gaps:
        new_hits = [hit for hits in gap_hits for hit in hits or () if hit.block_id not in shown_ids]
        fresh = within(list({hit.block_id: hit for hit in new_hits}.values()), _MAX_RESULT_CHARS)
        new += fresh
        documents = documents_with_blocks(fresh, records) if fresh else NOTHING_NEW
        parts = [documents, *(element("not_searched", missing) for missing in not_searched)]
        parts += [load("answering", "not_searched")] if not_searched else []
        messages.append(Message(role="user", text="\n".join([*parts, load("answering", "continue")])))
    doc_ids = {hit.doc_id for hit in new}.union(record.doc_id for one in collected for record in one.records)
    return TurnResults(
        messages=tuple(messages),
        hits=tuple(new),
        figures=tuple(hit for one in collected for hit in one.figures)[:MAX_FIGURES],
        records=tuple(record for doc_id, record in records.items() if doc_id in doc_ids),
        tables=results.tables,
        pages=tuple(page for one in collected for page in one.snapshots),
        found_urls=tuple(page.url for one in collected for page in one.pages),
        not_searched=not_searched,
    )


def _limits(question: TurnQuestion) -> Filters:
    """Return the filters of a search for a gap: the caller's restrictions, and the documents that the first
    search was limited to, if any.
    """
    limits = caller_limits(question.request)
    about = question.stored.every_ids or question.stored.doc_ids
    if question.collected.evidence.narrowed and about:
        limits["doc_id"] = about
    return limits


def relevant_to_gap(hits: Sequence[Hit], shown_ids: Collection[str], least: float) -> list[Hit]:
    """Return the hits of a gap search that may contain the missing information. Headings and weak matches are
    dropped.

    The model found no answer in the passages that it has seen, so a passage that fits the gap much worse than
    one of these won't contain it either.

    Args:
        shown_ids: ids of the blocks that the model has seen.
        least: minimum score.
    """
    best_shown = max((hit.score for hit in hits if hit.block_id in shown_ids), default=0.0)
    least = max(least, _NEAR_SHOWN * best_shown)
    return [hit for hit in hits if hit.score >= least and not hit.is_heading()]
