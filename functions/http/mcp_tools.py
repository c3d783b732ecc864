"""Tools of the MCP server for other assistants. Each call runs with the permissions of the calling user.

`search` and `fetch` have the format that ChatGPT requires. A run may outlast the tool call: if the answer
takes long, `ask` returns the id of the run, and repeating the question within ten minutes joins the same run.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, ClassVar
from urllib.parse import urljoin

import azure.durable_functions as df
from fastapi import Request
from pydantic import Field

from functions.http.event_stream import NamedFrame, closer, follow_named
from functions.http.questions import Question, begin_question, deliver_answer, view_at_end, view_of
from functions.http.requests import count_call, note_act, note_list
from shared.access.models import UserContext
from shared.answering.agent_files import agents_for
from shared.answering.runs import view_run
from shared.documents.listing import ListCriteria, find_documents, list_documents
from shared.platform.errors import AccessDeniedError, DocumentNotFoundError, GroundworkError, NotFoundError
from shared.platform.hashing import digest
from shared.retrieval.block_reading import DocumentBlocks
from shared.retrieval.blocks import MAX_TOP_K
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.agents import AGENT_NAME
from shared.runs.models import ID_PATTERN, MAX_ANSWER_CHARS, ChatRequest, ClarificationAnswer, RunView
from shared.runs.portable_text import portable_text
from shared.runs.run_store import owned_run
from shared.tools import table_tools
from shared.tools.base import HINTS, Parameters, Tool, ToolResult
from shared.tools.document_tools import DocumentFilters
from shared.tools.registry import Binding, block_search, bound_tool
from shared.wiring import Services

ANSWER_WITHIN_S = 25.0  # MCP clients time out after 30 to 60 s
SAME_QUESTION_HOLDS = timedelta(minutes=10)
_MAX_TEXT_CHARS = 60_000
# Number of pages to request for a whole document, more than any document has (unmeasured). A search returns
# at most 500 blocks.
_MAX_PAGES = 10_000
_CITED = {
    *("n", "kind", "filename", "page_number", "quote", "verified", "fetched_at"),
    *("sql", "sql_in_words", "columns", "rows", "row_count"),
}
_METADATA = {"doc_id", "filename", "author", "document_type", "language", "page_count", "upload_date"}
_ITEM = re.compile(r"([A-Za-z0-9_-]{1,100})(?:/pages/([1-9][0-9]{0,5}))?", re.ASCII)

_REFUSALS = {AccessDeniedError.code, DocumentNotFoundError.code, NotFoundError.code}
_PROGRESS = {
    "ACTION": "Planning",
    "TOOL_STARTED": "Reading the documents",
    "TOKEN": "Writing the answer",
    "ASK_USER": "Asking which document is meant",
}

Progress = Callable[[str], Awaitable[None]]
"""Tells the client in words what is being done."""


@dataclass(frozen=True)
class McpCall:
    """The request, user and services of one MCP tool call.

    Attributes:
        address: base URL of the app in a browser, without a trailing slash.
        progress: reports progress; None if the client doesn't want any.
    """

    request: Request
    user: UserContext
    services: Services
    client: df.DurableOrchestrationClient
    address: str
    progress: Progress | None = None

    @property
    def binding(self) -> Binding:
        """The search indexes, restricted to documents that the user may read."""
        return Binding(self.services, self.user)


class McpTool(Tool):
    """Base class of the MCP tools. An instance serves a single call.

    Attributes:
        waits: whether a call stays open until a run has ended.
    """

    waits: ClassVar[bool] = False

    def __init__(self, call: McpCall) -> None:
        self._call = call

    async def execute(self, /, **kwargs: Any) -> ToolResult:
        """Run the tool, and add an entry to the audit trail if the caller was denied access."""
        result = await super().execute(**kwargs)
        if result.get("type") in _REFUSALS:
            await note_refused_tool(self._call, self.name, str(kwargs.get("id", "")))
        return result

    def _failure(self, error: GroundworkError) -> ToolResult:
        """Convert an error to a failed result with the error code that the HTTP API uses."""
        hints = list(error.hints or HINTS.get(error.code, ()))
        return {**super()._failure(error), "type": error.code, "hints": hints}

    @classmethod
    def describe(cls, call: McpCall) -> dict[str, Any]:
        """Return the entry that describes the tool in `tools/list`."""
        return {
            "name": cls.name,
            "description": cls.description_for(call),
            "inputSchema": cls.parameters.model_json_schema(),
            # `ask` counts as read-only too: it stores a run of the caller but changes no other data.
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        }

    @classmethod
    def description_for(cls, call: McpCall) -> str:
        """Return the description of the tool, which subclasses may adapt to the caller."""
        del call
        return cls.description


class SearchParameters(Parameters):
    """Arguments of the tool `search`."""

    query: str = Field(min_length=1, max_length=8000, description="Search terms, or a question.")
    top_k: int = Field(default=10, ge=1, le=MAX_TOP_K, description="Maximum number of passages.")
    filters: DocumentFilters = Field(default_factory=dict)


class Search(McpTool):
    """Tool that searches for passages and returns them grouped by page."""

    name = "search"
    description = (
        "Search the organisation's documents for passages. Returns pages with the passages that match; pass "
        "a result's id to `fetch` to read the whole page. For an answer with proved quotations use `ask`."
    )
    parameters = SearchParameters

    async def _run(self, arguments: SearchParameters) -> ToolResult:
        call = self._call
        await count_call(call.request, call.user, call.services)
        search = block_search(call.services, call.user)
        hits = await search.search([arguments.query], arguments.top_k, arguments.filters)
        doc_ids = dict.fromkeys(hit.doc_id for hit in hits)
        await note_act(call.request, call.user, call.services, "search", *doc_ids)
        documents: dict[str, dict[str, Any]] = {}
        for hit in hits:
            item = _item_of(hit.doc_id, hit.page_number)
            if item in documents:
                documents[item]["text"] += f"\n\n{_text_of(hit)}"
            else:
                documents[item] = {**_item_view(hit, item, call), "text": _text_of(hit)}
        return {"results": list(documents.values())}


class FetchParameters(Parameters):
    """Arguments of the tool `fetch`."""

    id: str = Field(min_length=1, max_length=200, description="Id of a search result, or a doc_id.")


class Fetch(McpTool):
    """Tool that returns the text of a page or of a whole document."""

    name = "fetch"
    description = "Read a page, or a document from its beginning, by the id of a search result or a doc_id."
    parameters = FetchParameters

    async def _run(self, arguments: FetchParameters) -> ToolResult:
        record, hits = await read_item(arguments.id, self._call)
        text = text_of(hits)
        metadata = record.model_dump(mode="json", include=_METADATA)
        return {
            **_item_view(hits[0], arguments.id, self._call),
            "title": record.title or record.filename,
            "text": text[:_MAX_TEXT_CHARS],
            "metadata": {**metadata, "document_date": record.printed_date},
            "truncated": len(text) > _MAX_TEXT_CHARS,
        }


async def note_refused_tool(call: McpCall, name: str, item: str) -> None:
    """Record in the audit trail that a tool call was denied access. `item` is the requested item id, or "" if
    there is none. Never raises.
    """
    matched = _ITEM.fullmatch(item)
    doc_ids = [matched[1]] if matched else []
    subject = f"MCP {name}"
    await note_act(
        call.request, call.user, call.services, "refused", *doc_ids, subject=subject, may_repeat=True
    )


async def read_item(item: str, call: McpCall) -> tuple[DocumentRecord, list[Hit]]:
    """Count a call against the rate limit. Then return a document with all of its blocks, or with the blocks
    of one page.

    Raises:
        DocumentNotFoundError: the document or page doesn't exist, or the caller may not read it.
        TooManyRequestsError: the caller has reached the rate limit.
    """
    await count_call(call.request, call.user, call.services)
    matched = _ITEM.fullmatch(item)
    absent = DocumentNotFoundError(
        f"There is no document or page {item[:64]!r}.", "Use the id of a search result."
    )
    if matched is None:
        raise absent
    doc_id, page = matched.groups()
    binding = call.binding
    record = await DocumentSearch(binding.documents).get(doc_id)
    first, last = (int(page), int(page)) if page else (1, _MAX_PAGES)
    hits = await DocumentBlocks(binding.blocks).pages(doc_id, first, last)
    if not hits:
        raise absent
    await note_act(call.request, call.user, call.services, "page", doc_id)
    return record, hits


class AskParameters(Parameters):
    """Arguments of the tool `ask`."""

    question: str = Field(min_length=1, description="The question, in any language.")
    thread_id: str | None = Field(
        default=None,
        pattern=ID_PATTERN,
        description="Thread id of an earlier answer, to continue that conversation.",
    )
    agent: str | None = Field(
        default=None,
        pattern=AGENT_NAME,
        description="Name of the agent to ask. By default, all documents are searched.",
    )


class Ask(McpTool):
    """Tool that asks a question and waits for the answer. If that takes too long, it returns the id of the
    run instead.
    """

    name = "ask"
    description = (
        "Ask a question about the organisation's documents. Returns an answer whose quotations were checked "
        "against the documents, with the page of each. If `status` is `running`, call `get_answer` with its "
        "run_id. If it is `waiting`, put `clarification` to the person and call `reply` with their answer."
    )
    parameters = AskParameters
    waits = True

    @classmethod
    def description_for(cls, call: McpCall) -> str:
        """Return the description of the tool, followed by the agents that the caller may use."""
        agents = agents_for(call.user, call.services.settings, "mcp")
        agent_list = " ".join(f"{agent.name}: {agent.description.rstrip('.')}." for agent in agents)
        return f"{cls.description} Agents: {agent_list}" if agents else cls.description

    async def _run(self, arguments: AskParameters) -> ToolResult:
        view, is_repeat = await self._start_or_join(arguments, SAME_QUESTION_HOLDS)
        if is_repeat and view.status in ("failed", "cancelled"):
            view, _ = await self._start_or_join(arguments, timedelta(0))
        return _outcome(view, self._call)

    async def _start_or_join(self, arguments: AskParameters, holds: timedelta) -> tuple[RunView, bool]:
        """Start a run, or join the run of an identical recent call. Return the run, and whether an earlier
        call started it.
        """
        call = self._call
        chat = ChatRequest(question=arguments.question, thread_id=arguments.thread_id, agent=arguments.agent)
        key = f"mcp-{digest(arguments.model_dump_json())}"
        now = datetime.now(UTC)
        question = Question(
            call.request, chat, call.user, call.services, call.client, now, key, holds, channel="mcp"
        )
        run_id, first_slice = await begin_question(question)
        events = _with_progress(question.events(run_id, first_slice, ANSWER_WITHIN_S), call.progress)
        return await view_at_end(events, partial(view_of, run_id, question)), first_slice is None


class GetAnswerParameters(Parameters):
    """Arguments of the tool `get_answer`."""

    run_id: str = Field(pattern=ID_PATTERN, description="Run id that `ask` returned.")


class GetAnswer(McpTool):
    """Tool that waits for the answer of a run that an earlier call of `ask` started."""

    name = "get_answer"
    description = "The answer to an earlier question, by its run_id; waits for a while."
    parameters = GetAnswerParameters
    waits = True

    async def _run(self, arguments: GetAnswerParameters) -> ToolResult:
        call, run_id = self._call, arguments.run_id
        services = call.services
        await count_call(call.request, call.user, services)
        view = await _view_of(run_id, call)
        if view.status == "running":
            revive = closer(call.client, run_id, services)
            events = follow_named(services.run_log, run_id, 0, ANSWER_WITHIN_S, revive)
            view = await view_at_end(_with_progress(events, call.progress), partial(_view_of, run_id, call))
        return _outcome(view, call)


class ReplyParameters(Parameters):
    """Arguments of the tool `reply`."""

    run_id: str = Field(pattern=ID_PATTERN, description="Id of the run that waits for the clarification.")
    answer: str = Field(
        min_length=1,
        max_length=MAX_ANSWER_CHARS,
        pattern=r"\S",
        description="The user's answer: the number of an option, or free text.",
    )


class Reply(McpTool):
    """Tool that answers the clarification question of a waiting run, then waits for the run's answer."""

    name = "reply"
    description = (
        "Answer the `clarification` of a run whose `status` is `waiting`, and get its answer. Pass on what "
        "the person said; never decide for them, least of all whether the web may be used."
    )
    parameters = ReplyParameters
    waits = True

    async def _run(self, arguments: ReplyParameters) -> ToolResult:
        call, run_id = self._call, arguments.run_id
        services = call.services
        await count_call(call.request, call.user, services)
        record = await owned_run(run_id, call.user, services.runs)
        log_slice = await services.run_log.read(run_id) if record.has_log else None
        answer = ClarificationAnswer(text=arguments.answer)
        await deliver_answer(record, answer, call.user, services, call.client)
        if log_slice is not None:
            revive = closer(call.client, run_id, services)
            after = len(log_slice.public)
            events = follow_named(
                services.run_log, run_id, after, ANSWER_WITHIN_S, revive, first_slice=log_slice
            )
            view = await view_at_end(_with_progress(events, call.progress), partial(_view_of, run_id, call))
        else:
            view = await _view_of(run_id, call)
        return _outcome(view, call)


class ListTables(McpTool):
    """Tool that lists the tables that the caller may query."""

    name = table_tools.ListTables.name
    description = table_tools.ListTables.description
    parameters: ClassVar[type[Parameters]] = table_tools.ListTables.parameters

    async def _run(self, arguments: Parameters) -> ToolResult:
        call = self._call
        await count_call(call.request, call.user, call.services)
        return await bound_tool(self.name, call.services, call.user).execute(**arguments.model_dump())


class RunSql(ListTables):
    """Tool that runs an SQL query on tables of documents. The documents read are recorded in the audit
    trail.
    """

    name = table_tools.RunSql.name
    description = table_tools.RunSql.description
    parameters = table_tools.RunSql.parameters

    async def _run(self, arguments: Parameters) -> ToolResult:
        call, result = self._call, await super()._run(arguments)
        read = {table["doc_id"] for table in result.get("tables", ())}
        if read:
            await note_act(call.request, call.user, call.services, "page", *sorted(read))
        return result


class ListDocumentsParameters(Parameters):
    """Arguments of the tool `list_documents`."""

    query: str = Field(
        default="",
        max_length=500,
        description="Words to search for in names, tags, people and summaries. Empty lists all documents.",
    )
    filters: DocumentFilters = Field(default_factory=dict)
    limit: int = Field(default=50, ge=1, le=100, description="Maximum number of documents.")
    cursor: str = Field(
        default="", max_length=6000, description="The value of `cursor` in the previous page."
    )


class ListDocuments(McpTool):
    """Tool that lists the documents that the caller may read."""

    name = "list_documents"
    description = "List the documents that the person may read, newest first, or the best matches of a query."
    parameters = ListDocumentsParameters

    async def _run(self, arguments: ListDocumentsParameters) -> ToolResult:
        user, services = self._call.user, self._call.services
        await count_call(self._call.request, user, services)
        if arguments.query:
            listed = await find_documents(arguments.query, user, services, arguments.filters, arguments.limit)
        else:
            listed = await list_documents(
                user, services, ListCriteria(arguments.filters), arguments.limit, arguments.cursor
            )
        await note_list(self._call.request, user, services, listed)
        return listed.model_dump(mode="json", exclude_none=True)


_TOOLS = (Search, Fetch, Ask, GetAnswer, Reply, ListDocuments, ListTables, RunSql)
TOOLS: dict[str, type[McpTool]] = {tool.name: tool for tool in _TOOLS}


async def _with_progress(
    events: AsyncGenerator[NamedFrame, None], progress: Progress | None
) -> AsyncGenerator[NamedFrame, None]:
    """Yield the events of a run unchanged, and report each change of activity to the client."""
    reported = ""
    async with aclosing(events):
        async for name, frame in events:
            activity = _PROGRESS.get(name or "", "")
            if progress and activity and activity != reported:
                await progress(activity)
                reported = activity
            yield name, frame


async def _view_of(run_id: str, call: McpCall) -> RunView:
    record = await owned_run(run_id, call.user, call.services.runs)
    return await view_run(record, call.services, call.user)


def _outcome(view: RunView, call: McpCall) -> ToolResult:
    outcome: dict[str, Any] = {"run_id": view.run_id, "thread_id": view.thread_id, "status": view.status}
    if view.answer is not None:
        outcome |= {
            "answer": portable_text(view.answer),
            "abstained": view.answer.abstained,
            "citations": [
                {
                    **cited.model_dump(mode="json", include=_CITED),
                    "url": urljoin(call.address, cited.url) if cited.url else "",
                }
                for cited in view.answer.citations
            ],
        }
    if view.clarification is not None:
        outcome["clarification"] = {
            "question": view.clarification.question,
            "options": [option.name for option in view.clarification.options],
        }
    return outcome | ({"error": view.error, "error_type": view.error_type} if view.error else {})


def _item_of(doc_id: str, page_number: int | None) -> str:
    return f"{doc_id}/pages/{page_number}" if page_number is not None else doc_id


def _item_view(hit: Hit, item: str, call: McpCall) -> dict[str, Any]:
    page = f", p. {hit.page_number}" if "/pages/" in item else ""
    view = item if "/pages/" in item else f"{item}/readable"
    return {"id": item, "title": f"{hit.filename}{page}", "url": f"{call.address}/api/documents/{view}"}


def text_of(hits: Sequence[Hit]) -> str:
    """Join the text of blocks, separated by blank lines. Images contribute their captions."""
    return "\n\n".join(filter(None, map(_text_of, hits)))


def _text_of(hit: Hit) -> str:
    return hit.image_caption or "" if hit.block_type == "image" else hit.content
