"""The tool `rag_metadata_search`: documents whose names, people, tags or summaries match words."""

from pydantic import Field

from shared.retrieval.documents import DocumentSearch
from shared.tools.base import DocumentFilters, Parameters, Query, Tool, ToolResult, found_document


class MetadataSearchParameters(Parameters):
    """Arguments of `rag_metadata_search`."""

    query: Query
    filters: DocumentFilters = Field(default_factory=dict)
    limit: int = Field(default=10, description="How many documents, 1-100.")


class MetadataSearch(Tool):
    """Searches metadata for the user that the DocumentSearch is bound to."""

    name = "rag_metadata_search"
    description = (
        "Find documents by what is known of them: file name, title, type, department, author, tags, summary. "
        "For questions on documents themselves; for what they say, search passages."
    )
    parameters = MetadataSearchParameters

    def __init__(self, documents: DocumentSearch) -> None:
        self._documents = documents

    async def _run(self, arguments: MetadataSearchParameters) -> ToolResult:
        found = await self._documents.find(arguments.query, arguments.filters, arguments.limit)
        return {"documents": [found_document(record) for record in found], "count": len(found)}
