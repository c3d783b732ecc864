"""The tool `rag_get_document`: what is known of one document."""

from pydantic import Field

from shared.tools.base import DocumentTool, Parameters, ToolResult

# Only the owner may see who else can read a document; hashes and counters don't help a model.
_HIDDEN = {"access_control_list", "owner_id", "content_hash", "edited_fields", "status_reason"}


class GetDocumentParameters(Parameters):
    """Arguments of `rag_get_document`."""

    doc_id: str = Field(
        description="The document's id, as other tools return it.", min_length=1, max_length=1000
    )


class GetDocument(DocumentTool):
    """Gets one document that the user of `documents` may read."""

    name = "rag_get_document"
    description = "Get a document's title, summary, page count and other attributes."
    parameters = GetDocumentParameters

    async def _run(self, arguments: GetDocumentParameters) -> ToolResult:
        record = await self.documents.get(arguments.doc_id)
        return {"document": record.model_dump(mode="json", exclude=_HIDDEN)}
