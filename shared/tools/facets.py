"""The tool `rag_facets`: which types, departments, languages, tags and projects there are, and how often."""

from typing import Literal

from pydantic import Field

from shared.retrieval.documents import DocumentFacets
from shared.tools.base import DocumentFilters, Parameters, Tool, ToolResult

FacetField = Literal["document_type", "department", "language", "tags", "project_id"]
_ALL: tuple[FacetField, ...] = ("document_type", "department", "language", "tags", "project_id")


class FacetsParameters(Parameters):
    """Arguments of `rag_facets`."""

    fields: tuple[FacetField, ...] = Field(default=_ALL, description="What to count.", min_length=1)
    filters: DocumentFilters = Field(default_factory=dict)
    limit: int = Field(default=20, description="How many values of each field, the commonest first, 1-100.")


class Facets(Tool):
    """Counts documents for the user that the DocumentFacets are bound to."""

    name = "rag_facets"
    description = (
        "Count documents by type, department, language, tag and project. Shows what values a filter can have."
    )
    parameters = FacetsParameters

    def __init__(self, facets: DocumentFacets) -> None:
        self._facets = facets

    async def _run(self, arguments: FacetsParameters) -> ToolResult:
        fields = tuple(dict.fromkeys(arguments.fields))
        counted, total = await self._facets.count(fields, arguments.filters, arguments.limit)
        shown = {
            field: [value.model_dump(mode="json") for value in values] for field, values in counted.items()
        }
        return {"facets": shown, "document_count": total}
