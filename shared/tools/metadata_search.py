"""The tool `rag_metadata_search`: documents whose names, people, tags or summaries match words."""

from pydantic import Field

from shared.tools.base import DocumentFilters, DocumentTool, Parameters, Query, ToolResult

_SHOWN = {
    *("doc_id", "filename", "title", "document_type", "upload_date", "summary_brief"),
    *("author", "department", "language", "tags", "page_count"),
}


class MetadataSearchParameters(Parameters):
    """Arguments of `rag_metadata_search`."""

    query: Query
    filters: DocumentFilters = Field(default_factory=dict)
    limit: int = Field(default=10, description="How many documents, 1-100.")


class MetadataSearch(DocumentTool):
    """Searches the metadata of documents that the user of `documents` may read."""

    name = "rag_metadata_search"
    description = (
        "Find documents by what is known of them: file name, title, type, department, author, tags, summary. "
        "For questions on documents themselves; for what they say, search passages."
    )
    parameters = MetadataSearchParameters

    async def _run(self, arguments: MetadataSearchParameters) -> ToolResult:
        found = await self.documents.find(arguments.query, arguments.filters, arguments.limit)
        shown = [record.model_dump(mode="json", include=_SHOWN) for record in found]
        return {"documents": shown, "count": len(found)}
