"""MCP tools that search, read and list documents and query their tables. `search` and `fetch` have the format
that ChatGPT requires.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from functions.http.mcp_tool import ITEM, McpCall, McpTool
from functions.http.requests import count_call, note_act, note_list
from shared.documents.listing import ListCriteria, find_documents, list_documents
from shared.platform.errors import DocumentNotFoundError
from shared.retrieval.block_reading import DocumentBlocks
from shared.retrieval.blocks import MAX_TOP_K
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord, Hit
from shared.tools import table_tools
from shared.tools.base import Parameters, ToolResult
from shared.tools.document_tools import DocumentFilters
from shared.tools.registry import block_search, bound_tool

_MAX_TEXT_CHARS = 60_000
# Number of pages to request for a whole document, more than any document has (unmeasured). A search returns
# at most 500 blocks.
_MAX_PAGES = 10_000
_METADATA = {"doc_id", "filename", "author", "document_type", "language", "page_count", "upload_date"}


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


async def read_item(item: str, call: McpCall) -> tuple[DocumentRecord, list[Hit]]:
    """Count a call against the rate limit. Then return a document with all of its blocks, or with the blocks
    of one page.

    Raises:
        DocumentNotFoundError: the document or page doesn't exist, or the caller may not read it.
        TooManyRequestsError: the caller has reached the rate limit.
    """
    await count_call(call.request, call.user, call.services)
    matched = ITEM.fullmatch(item)
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
