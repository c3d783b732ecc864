"""Tools over document metadata, which list, search, count or retrieve documents."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field

from shared.platform.search import Filters
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.filters import DOCUMENT_FIELDS
from shared.retrieval.models import DocumentRecord
from shared.tools.base import Parameters, Query, Tool, ToolEvidence, ToolResult, describe_filters
from shared.tools.binding import Binding


@dataclass(frozen=True)
class DocumentTool(Tool):
    """Base class of tools over the documents that the user may read."""

    documents: DocumentSearch
    evidence: ToolEvidence = field(default_factory=ToolEvidence)

    reports_documents = True

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        return cls(DocumentSearch(binding.documents), binding.evidence)


DocumentFilters = Annotated[
    Filters,
    Field(description=describe_filters(DOCUMENT_FIELDS)),
]


FacetField = Literal["document_type", "department", "language", "tags", "project_id"]


class FacetsParameters(Parameters):
    """Arguments of `rag_facets`."""

    fields: tuple[FacetField, ...] = Field(
        default=get_args(FacetField), description="Fields to count.", min_length=1
    )
    filters: DocumentFilters = Field(default_factory=dict)
    limit: int = Field(default=20, description="Number of values per field, most frequent first, 1-100.")


class Facets(DocumentTool):
    """Counts readable documents by the values of metadata fields."""

    name = "rag_facets"
    description = (
        "Count documents by type, department, language, tag and project. Shows what values a filter can have."
    )
    parameters = FacetsParameters
    documentation = "`facets`: values of each field with counts; `document_count`."
    example = "{}"

    async def _run(self, arguments: FacetsParameters) -> ToolResult:
        fields = tuple(dict.fromkeys(arguments.fields))
        self.evidence.obstacles.append("counts")
        counted, total = await self.documents.facets(fields, arguments.filters, arguments.limit)
        documents = {
            field: [value.model_dump(mode="json") for value in values] for field, values in counted.items()
        }
        return {"facets": documents, "document_count": total}


# Fields that the model never sees: only owners may know who can read a document, and the other fields are of
# no use in an answer.
_HIDDEN = {"access_control_list", "owner_id", "content_hash", "edited_fields", "status_reason", "thread_id"}


class GetDocumentParameters(Parameters):
    """Arguments of `rag_get_document`."""

    doc_id: str = Field(
        description="The document's id, as other tools return it.", min_length=1, max_length=1000
    )


class GetDocument(DocumentTool):
    """Returns the metadata of one readable document."""

    name = "rag_get_document"
    description = "Get a document's title, summary, page count and other attributes."
    parameters = GetDocumentParameters
    documentation = "`document` with all metadata, never its access list."
    example = '{"doc_id": "manual"}'

    async def _run(self, arguments: GetDocumentParameters) -> ToolResult:
        record = await self.documents.get(arguments.doc_id)
        self.evidence.records.append(record)
        return {"document": _prompt_fields(record, set(DocumentRecord.model_fields) - _HIDDEN)}


def _prompt_fields(record: DocumentRecord, fields: set[str]) -> dict[str, Any]:
    """Return the given fields of a record for a prompt. `document_date`, which is stored as a day, is reduced
    to its printed precision, such as a year.
    """
    fields_of_record = record.model_dump(mode="json", include=fields)
    return {**fields_of_record, "document_date": record.printed_date}


_LISTED = {"doc_id", "filename", "title", "document_type", "upload_date", "document_date", "summary_brief"}
_FOUND = _LISTED | {"author", "department", "language", "tags", "page_count"}


class MetadataSearchParameters(Parameters):
    """Arguments of `rag_metadata_search`."""

    query: Query
    filters: DocumentFilters = Field(default_factory=dict)
    limit: int = Field(default=10, description="Maximum number of documents, 1-100.")


class MetadataSearch(DocumentTool):
    """Searches readable documents by their metadata."""

    name = "rag_metadata_search"
    description = (
        "Find documents by what is known of them: file name, title, type, department, author, tags, summary. "
        "For questions on documents themselves; for what they say, search passages."
    )
    parameters = MetadataSearchParameters
    documentation = "Documents whose metadata matches; best first."
    example = '{"query": "pump"}'

    async def _run(self, arguments: MetadataSearchParameters) -> ToolResult:
        records = await self.documents.find(arguments.query, arguments.filters, arguments.limit)
        self.evidence.records.extend(records)
        items = [_prompt_fields(record, _FOUND) for record in records]
        return {"documents": items, "count": len(records)}


class ListDocumentsParameters(Parameters):
    """Arguments of `rag_list_documents`."""

    filters: DocumentFilters = Field(default_factory=dict)
    sort_by: str = Field(
        default="upload_date",
        description="upload_date, document_date, filename, title, page_count or document_type.",
    )
    limit: int = Field(default=20, description="Maximum number of documents, 1-100.")


class ListDocuments(DocumentTool):
    """Lists readable documents, filtered and sorted."""

    name = "rag_list_documents"
    description = "List documents, newest first unless sorted otherwise, narrowed by filters."
    parameters = ListDocumentsParameters
    documentation = (
        "`documents` with `doc_id`, `filename`, `title`, `document_type`, `upload_date`, `document_date`, "
        "`summary_brief`; `count`."
    )
    example = "{}"

    async def _run(self, arguments: ListDocumentsParameters) -> ToolResult:
        records = await self.documents.list_documents(
            arguments.filters, sort_by=arguments.sort_by, limit=arguments.limit
        )
        self.evidence.records.extend(records)
        items = [_prompt_fields(record, _LISTED) for record in records]
        return {"documents": items, "count": len(records)}
