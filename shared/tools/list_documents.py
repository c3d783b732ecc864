"""The tool `rag_list_documents`: which documents there are."""

from pydantic import Field

from shared.retrieval.documents import DocumentSearch
from shared.tools.base import DocumentFilters, Parameters, Tool, ToolResult, listed_document


class ListDocumentsParameters(Parameters):
    """Arguments of `rag_list_documents`."""

    filters: DocumentFilters = Field(default_factory=dict)
    sort_by: str = Field(
        default="upload_date", description="upload_date, filename, title, page_count or document_type."
    )
    limit: int = Field(default=20, description="How many documents, 1-100.")


class ListDocuments(Tool):
    """Lists documents for the user that the DocumentSearch is bound to."""

    name = "rag_list_documents"
    description = "List documents, newest first unless sorted otherwise, narrowed by filters."
    parameters = ListDocumentsParameters

    def __init__(self, documents: DocumentSearch) -> None:
        self._documents = documents

    async def _run(self, arguments: ListDocumentsParameters) -> ToolResult:
        found = await self._documents.list_documents(
            arguments.filters, sort_by=arguments.sort_by, limit=arguments.limit
        )
        return {"documents": [listed_document(record) for record in found], "count": len(found)}
