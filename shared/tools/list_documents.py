"""The tool `rag_list_documents`: which documents there are."""

from pydantic import Field

from shared.tools.base import DocumentFilters, DocumentTool, Parameters, ToolResult

_SHOWN = {"doc_id", "filename", "title", "document_type", "upload_date", "summary_brief"}


class ListDocumentsParameters(Parameters):
    """Arguments of `rag_list_documents`."""

    filters: DocumentFilters = Field(default_factory=dict)
    sort_by: str = Field(
        default="upload_date", description="upload_date, filename, title, page_count or document_type."
    )
    limit: int = Field(default=20, description="How many documents, 1-100.")


class ListDocuments(DocumentTool):
    """Lists documents that the user of `documents` may read."""

    name = "rag_list_documents"
    description = "List documents, newest first unless sorted otherwise, narrowed by filters."
    parameters = ListDocumentsParameters

    async def _run(self, arguments: ListDocumentsParameters) -> ToolResult:
        found = await self.documents.list_documents(
            arguments.filters, sort_by=arguments.sort_by, limit=arguments.limit
        )
        shown = [record.model_dump(mode="json", include=_SHOWN) for record in found]
        return {"documents": shown, "count": len(found)}
