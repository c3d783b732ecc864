"""Facets: which values the metadata of documents has, and how often, over what one user may read."""

from collections.abc import Sequence

from shared.core.odata import all_of
from shared.models.search import FacetValue, Filters, SearchRequest
from shared.retrieval.filters import DOCUMENT_FIELDS, render_filters
from shared.retrieval.secured_index import SecuredIndex

FACET_FIELDS = ("document_type", "department", "language", "tags", "project_id")
MAX_VALUES = 100


class DocumentFacets:
    """Counts the documents that one user may read; only those whose ingestion is complete."""

    def __init__(self, index: SecuredIndex) -> None:
        self._index = index

    async def count(
        self, fields: Sequence[str], filters: Filters, limit: int
    ) -> tuple[dict[str, tuple[FacetValue, ...]], int]:
        """For each field its commonest values; and the number of documents that pass the filters.

        Args:
            fields: some of FACET_FIELDS.
            limit: values per field, clamped to 1-100.

        Raises:
            InvalidQueryError: an unknown filter field.
        """
        most = min(max(limit, 1), MAX_VALUES)
        request = SearchRequest(
            filter=all_of("status eq 'ready'", render_filters(filters, DOCUMENT_FIELDS)),
            select=("doc_id",),
            facets=tuple(f"{field},count:{most}" for field in fields),
            top=1,
            count=True,
        )
        page = await self._index.search(request)
        return {field: page.facets.get(field, ()) for field in fields}, page.count or 0
