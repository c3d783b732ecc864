"""The tool `rag_facets`: which types, departments, languages, tags and projects there are, and how often."""

from typing import Literal, get_args

from pydantic import Field

from shared.tools.base import DocumentFilters, DocumentTool, Parameters, ToolResult

FacetField = Literal["document_type", "department", "language", "tags", "project_id"]


class FacetsParameters(Parameters):
    """Arguments of `rag_facets`."""

    fields: tuple[FacetField, ...] = Field(
        default=get_args(FacetField), description="What to count.", min_length=1
    )
    filters: DocumentFilters = Field(default_factory=dict)
    limit: int = Field(default=20, description="How many values of each field, the commonest first, 1-100.")


class Facets(DocumentTool):
    """Counts documents that the user of `documents` may read."""

    name = "rag_facets"
    description = (
        "Count documents by type, department, language, tag and project. Shows what values a filter can have."
    )
    parameters = FacetsParameters

    async def _run(self, arguments: FacetsParameters) -> ToolResult:
        fields = tuple(dict.fromkeys(arguments.fields))
        counted, total = await self.documents.facets(fields, arguments.filters, arguments.limit)
        shown = {
            field: [value.model_dump(mode="json") for value in values] for field, values in counted.items()
        }
        return {"facets": shown, "document_count": total}
