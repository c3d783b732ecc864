"""The tool `rag_get_document`: what is known of one document."""

from pydantic import Field

from shared.retrieval.documents import DocumentSearch
from shared.tools.base import Parameters, Tool, ToolResult

# Who may read a document is nobody's business but its owner's; hashes and counters help no model.
_HIDDEN = {"access_control_list", "owner_id", "content_hash", "edited_fields", "status_reason"}


class GetDocumentParameters(Parameters):
    """Arguments of `rag_get_document`."""

    doc_id: str = Field(
        description="The document's id, as other tools return it.", min_length=1, max_length=1000
    )


class GetDocument(Tool):
    """Gets one document for the user that the DocumentSearch is bound to."""

    name = "rag_get_document"
    description = "Get a document's title, summary, page count and other attributes."
    parameters = GetDocumentParameters

    def __init__(self, documents: DocumentSearch) -> None:
        self._documents = documents

    async def _run(self, arguments: GetDocumentParameters) -> ToolResult:
        record = await self._documents.get(arguments.doc_id)
        return {"document": record.model_dump(mode="json", exclude=_HIDDEN)}
