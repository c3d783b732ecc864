"""Plans and executes the tool calls of a turn, for all agents, and renders the results for the model.

Each block is shown to the model once. Failures are results for the model.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shared.answering.budget import LEAST_CHARS_PER_TOKEN
from shared.answering.passages import fitting_pages, web_results
from shared.answering.profiles import CallRules
from shared.evidence.models import TableResult
from shared.platform.concurrency import run_together
from shared.platform.language_models.models import Message, ToolCall
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.events import RunEvent, ToolResultEvent, ToolStartedEvent
from shared.tools.base import Tool, ToolEvidence
from shared.tools.execution import Called, describe_documents, execute_call, render_result
from shared.tools.models import WebHit
from shared.tools.semantic_search import SemanticSearch
from shared.tools.tool_calls import PlannedCall, plan_calls


def planned_calls(
    rules: CallRules, requested: Sequence[ToolCall], tools: Sequence[str], made: Collection[str]
) -> tuple[PlannedCall, ...]:
    """Plan the tool calls that a model requested. Calls beyond the limits of the profile are refused or
    dropped.

    Args:
        made: signatures of earlier calls.
    """
    left = min(rules.per_turn, calls_left(rules, made))
    if rules.max_argument_chars is not None:
        short_calls = [call for call in requested if len(call.arguments) <= rules.max_argument_chars]
        requested = short_calls[: max(left, 0)]
    return plan_calls(requested, tools, made, left)


def calls_left(rules: CallRules, made: Collection[str]) -> int:
    """Return how many more tool calls an agent may make in total, or per turn if its total is unlimited."""
    return rules.per_turn if rules.in_all is None else rules.in_all - len(made)


@dataclass(frozen=True)
class GapSearch:
    """A search for information missing from the answer, executed together with the turn's tool calls. Readers
    see it as a search call.

    Attributes:
        hits: performs the search; returns None if it failed.
    """

    query: str
    hits: Callable[[], Awaitable[list[Hit] | None]]


@dataclass(frozen=True)
class CallResults:
    """Results of tool calls, with the messages that show them to the model.

    Attributes:
        messages: one per call, in order.
        hits: blocks that are new to the model.
        records: known documents, including the documents of `hits`.
    """

    called: tuple[Called, ...]
    messages: tuple[Message, ...]
    hits: tuple[Hit, ...]
    records: Mapping[str, DocumentRecord]

    @property
    def tables(self) -> tuple[TableResult, ...]:
        """The results of all table queries among the calls."""
        return tuple(table for one in self.called for table in one.evidence.results)


@dataclass(frozen=True)
class CallMaker:
    """Executor of one turn's tool calls, which also reports them as events and renders their results.

    Attributes:
        bind: returns a tool that acts with the user's permissions.
        send: sends events to readers.
        limit_s: returns the seconds available for a tool.
        documents: source of the descriptions of documents, which are optional.
        describe_s: seconds for reading these descriptions; None = not limited.
        max_chars: of each result.
        shown: ids of the blocks that the model has seen.
        records: known documents.
        queried: number of table queries that the run has already made.
    """

    rules: CallRules
    bind: Callable[[str, ToolEvidence], Tool]
    send: Callable[[Sequence[RunEvent]], Awaitable[None]]
    limit_s: Callable[[str], float]
    documents: DocumentSearch
    describe_s: float | None
    max_chars: int
    shown: Collection[str] = ()
    records: Mapping[str, DocumentRecord] = field(default_factory=dict)
    queried: int = 0

    async def make(
        self, calls: Sequence[PlannedCall], searches: Sequence[GapSearch] = ()
    ) -> tuple[tuple[Called, ...], tuple[list[Hit] | None, ...]]:
        """Execute tool calls and gap searches concurrently, and return their outcomes in the given order."""
        started = [
            ToolStartedEvent(tool=item.call.name, arguments=item.arguments)
            for item in calls
            if item.arguments is not None
        ]
        started += [
            ToolStartedEvent(tool=SemanticSearch.name, arguments={"query": one.query}) for one in searches
        ]
        if started:
            await self.send(started)
        outcomes, gap_hits = await run_together(
            run_together(
                *(execute_call(item, self.bind, self.limit_s(item.call.name), self.shown) for item in calls)
            ),
            run_together(*(one.hits() for one in searches)),
        )
        ended = [
            one.event
            for one in outcomes
            if one.planned.refused is None or self.rules.sends_refusals_with_results
        ]
        ended += [
            ToolResultEvent(tool=SemanticSearch.name, success=hits is not None, result_count=len(hits or ()))
            for hits in gap_hits
        ]
        if ended:
            await self.send(ended)
        return self._with_result_ids(outcomes), gap_hits

    async def render(self, outcomes: Sequence[Called], further: Sequence[Hit] = ()) -> CallResults:
        """Render the outcomes of tool calls as messages for the model, one per call.

        Args:
            further: hits of other searches, whose documents are described as well.
        """
        hits = [hit for one in outcomes for hit in one.evidence.hits]
        descriptions = dict(self.records)
        descriptions |= {record.doc_id: record for one in outcomes for record in one.evidence.records}
        records = await describe_documents([*hits, *further], descriptions, self.documents, self.describe_s)
        shown_ids = set(self.shown)
        new: list[Hit] = []
        messages: list[Message] = []
        for one in outcomes:
            text, fresh = render_result(one, shown_ids, records, self.max_chars)
            if self.rules.shows_web_text and (pages := web_pages(one)):
                text = web_results(fitting_pages(pages, self.max_chars // LEAST_CHARS_PER_TOKEN))
            fresh += [hit for hit in one.evidence.figures if hit.block_id not in shown_ids]
            shown_ids |= {hit.block_id for hit in fresh}
            new += fresh
            messages.append(Message(role="tool", text=text, call_id=one.planned.call.call_id))
        return CallResults(tuple(outcomes), tuple(messages), tuple(new), records)

    def _with_result_ids(self, outcomes: Sequence[Called]) -> tuple[Called, ...]:
        """Give each table query result an id such as `q3`, by which the model can cite it."""
        numbered: list[Called] = []
        count = self.queried
        for one in outcomes:
            tables: list[TableResult] = []
            result = one.result
            for table in one.evidence.results:
                count += 1
                tables.append(table.model_copy(update={"result_id": f"q{count}"}))
                result = {"success": True, "result_id": f"q{count}", **result}
            evidence = replace(one.evidence, results=tables) if tables else one.evidence
            numbered.append(replace(one, result=result, evidence=evidence))
        return tuple(numbered)


def web_pages(call: Called) -> list[WebHit]:
    """Return the web pages that a call read, followed by the pages that its search returned."""
    return [*pages_read(call), *call.evidence.pages]


def pages_read(call: Called) -> list[WebHit]:
    """Return the web pages whose contents a call read."""
    return [WebHit(url=page.final_url, title=page.title, text=page.text) for page in call.evidence.snapshots]
