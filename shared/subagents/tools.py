"""The tools of sub-agents: passages, documents by what is known of them, the web.

A model chooses words, documents of its task, and how many; who asks, the project and the limits of the task
are bound below and are no arguments. A call is carried out only if its tool is in scope; its result is data.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from shared.evidence.document_prompt import documents_with_blocks, documents_with_summaries
from shared.platform.errors import CallTimeoutError, DefectError, InvalidQueryError
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.models import SubagentTool, ToolUse
from shared.subagents.budget import CHARS_PER_TOKEN
from shared.subagents.initial_retrieval import Searches
from shared.subagents.passages import fitting, fitting_pages, repeats_passage, web_results
from shared.subagents.turn_context import TurnContext
from shared.tools.base import Parameters, Tool, ToolResult, failure
from shared.tools.models import WebHit
from shared.tools.tool_calls import PlannedCall, observation

_MAX_RESULTS = 10
_PAGES = 5  # of the web, of one search
_MAX_DOCUMENTS = 20
_LEAST_CHARS = 400  # of a failure, as the model reads it
_PASSING = frozenset({"NetworkError", "RateLimitError"})  # what may go better in a moment

_QUERY = Field(description="What to look for, in words or as a question.", min_length=1, max_length=500)
_DOC_IDS = Field(default=(), max_length=20, description="Documents of the task, by doc_id; empty = all.")


@dataclass(frozen=True)
class Found:
    """What a call found, beside what the model is shown of it."""

    text: str
    count: int = 0
    hits: Sequence[Hit] = ()
    records: Sequence[DocumentRecord] = ()
    pages: Sequence[WebHit] = ()


@dataclass(frozen=True)
class Outcome:
    """What became of a call.

    Attributes:
        use: None when it was for a tool that there is not.
        may_pass: it failed, and may go better in a moment.
    """

    found: Found
    use: ToolUse | None
    may_pass: bool = False


class RetrieveParameters(Parameters):
    """Arguments of `retrieve_documents`."""

    query: str = _QUERY
    doc_ids: tuple[str, ...] = _DOC_IDS
    top_k: int = Field(default=5, ge=1, le=_MAX_RESULTS, description="How many passages.")


class MetadataParameters(Parameters):
    """Arguments of `query_metadata`."""

    query: str = Field(default="", max_length=500, description="Words of titles, people, types, tags.")
    doc_ids: tuple[str, ...] = _DOC_IDS


class WebParameters(Parameters):
    """Arguments of `web_search`."""

    query: str = Field(
        description="General terms of the subject; no names of persons, customers or projects.",
        min_length=1,
        max_length=200,
    )


class _ChildTool(Tool):
    """A tool of one turn. `room_tokens` is what the model may be shown of a result."""

    def __init__(self, context: TurnContext, searches: Searches, room_tokens: int) -> None:
        self._desk = context
        self._searches = searches
        self._room_tokens = room_tokens

    def _within_task(self, doc_ids: Sequence[str]) -> Sequence[str]:
        scope = self._desk.scope
        strange = [doc_id for doc_id in doc_ids if scope and doc_id not in scope]
        if strange:
            raise InvalidQueryError(
                f"{strange[0][:64]!r} is no document of the task.", f"Allowed: {', '.join(scope)}."
            )
        return doc_ids


class RetrieveDocuments(_ChildTool):
    """Blocks by words and by meaning."""

    name = "retrieve_documents"
    description = "Find passages that bear on a query, by words and by meaning. Shows only new ones."
    parameters = RetrieveParameters

    async def _run(self, arguments: RetrieveParameters) -> ToolResult:
        filters = self._desk.filters(self._within_task(arguments.doc_ids))
        # Some are known already: as many more are asked for.
        known = {hit.block_id for hit in self._desk.state.hits}
        hits = await self._searches.blocks.search(
            [arguments.query], arguments.top_k + min(len(known), _MAX_RESULTS), filters
        )
        fresh = fitting([hit for hit in hits if hit.block_id not in known], self._room_tokens)
        fresh = fresh[: arguments.top_k]
        records = await self._searches.documents.get_many([hit.doc_id for hit in fresh])
        text = documents_with_blocks(fresh, records) if fresh else "Nothing that was not shown before."
        whole = {hit.block_id: hit for hit in hits}
        shown = [whole[hit.block_id] for hit in fresh]
        return {"found": Found(text, len(fresh), shown, tuple(records.values()))}


class QueryMetadata(_ChildTool):
    """Documents by what is known of them."""

    name = "query_metadata"
    description = "Documents with title, type, author, department, dates, tags and a short summary."
    parameters = MetadataParameters

    async def _run(self, arguments: MetadataParameters) -> ToolResult:
        documents = self._searches.documents
        filters = self._desk.filters(self._within_task(arguments.doc_ids))
        if arguments.query.strip():
            found = await documents.find(arguments.query, filters, _MAX_DOCUMENTS)
        else:
            found = await documents.list_documents(filters, limit=_MAX_DOCUMENTS)
        shown = _fitting_records(found, self._room_tokens)
        return {"found": Found(documents_with_summaries(shown, len(found)), len(shown), records=shown)}


class SearchWeb(_ChildTool):
    """Pages of the web."""

    name = "web_search"
    description = "Find pages of the web. What you write is told to strangers."
    parameters = WebParameters

    async def _run(self, arguments: WebParameters) -> ToolResult:
        web = self._desk.services.web_search
        if web is None:
            raise DefectError("The web is in scope, and there is nothing to search it with.")
        if repeats_passage(arguments.query, self._desk.state.hits, self._desk.task.question):
            raise InvalidQueryError(
                "The query repeats a passage of the documents.", "Use general terms of the subject."
            )
        hits = await web.search(arguments.query, _PAGES, self._searches.limits)
        pages = fitting_pages(hits, self._room_tokens)
        text = web_results(pages) if pages else "Nothing was found."
        return {"found": Found(text, len(pages), pages=pages)}


TOOLS: dict[SubagentTool, type[_ChildTool]] = {
    "retrieve_documents": RetrieveDocuments,
    "query_metadata": QueryMetadata,
    "web_search": SearchWeb,
}


class ChildTools:
    """The tools of one turn: those in scope and no others."""

    def __init__(self, context: TurnContext, room_tokens: int = 0, calls: int = 1) -> None:
        """`room_tokens`: for the results of all `calls` together."""
        searches = Searches(context)
        self._desk = context
        self._limit_s = searches.limit_s
        self._room_chars = room_tokens // max(calls, 1) * CHARS_PER_TOKEN
        self._tools = {
            name: TOOLS[name](context, searches, room_tokens // max(calls, 1)) for name in context.tools
        }
        self.definitions = tuple(tool.definition for tool in self._tools.values())

    async def call(self, planned: PlannedCall) -> Outcome:
        """Carry out a call, or refuse it. Never raises for what a tool does."""
        name = next((name for name in self._tools if name == planned.call.name), None)
        if planned.refused is not None or name is None:
            return self._refused(planned)
        began = time.perf_counter()
        result = await self._result(self._tools[name], planned)
        found: Found | None = result.get("found")
        use = ToolUse(
            turn=self._desk.turn.turn,
            tool=name,
            success=found is not None,
            result_count=found.count if found else 0,
            duration_ms=round((time.perf_counter() - began) * 1000),
            error_type=None if found else result["type"],
        )
        if found is not None:
            return Outcome(found, use)
        return Outcome(Found(self._told(result)), use, may_pass=result["type"] in _PASSING)

    async def _result(self, tool: Tool, planned: PlannedCall) -> ToolResult:
        try:
            async with asyncio.timeout(self._limit_s):
                return await tool.execute(**(planned.arguments or {}))
        except TimeoutError:
            return failure(CallTimeoutError(f"{tool.name} took longer than its limit."))

    def _refused(self, planned: PlannedCall) -> Outcome:
        why = planned.refused
        error = why.error if why else "This tool may not be used here."
        kind = why.error_type if why else "AccessDeniedError"
        hints = list(why.hints) if why else []
        use = next(
            (
                ToolUse(turn=self._desk.turn.turn, tool=name, success=False, error_type=kind)
                for name in TOOLS
                if name == planned.call.name
            ),
            None,  # a tool that there is not: a name that a model made up is not told to anybody
        )
        return Outcome(
            Found(self._told({"success": False, "error": error, "type": kind, "hints": hints})), use
        )

    def _told(self, result: ToolResult) -> str:
        return observation(result, max(self._room_chars, _LEAST_CHARS))


def _fitting_records(records: Sequence[DocumentRecord], room_tokens: int) -> list[DocumentRecord]:
    shown: list[DocumentRecord] = []
    room = room_tokens * CHARS_PER_TOKEN
    for record in records:
        room -= len(documents_with_summaries([record]))
        if room < 0 and shown:
            break
        shown.append(record)
    return shown
