"""An index that finds the reports only if the query contains the word "revenue"."""

from shared.platform.search import SearchPage, SearchRequest
from tests.fakes.search_index import InMemorySearchIndex


class LateReports(InMemorySearchIndex):
    """An index of blocks in which a first search misses the reports."""

    async def search(self, request: SearchRequest) -> SearchPage:
        page = await super().search(request)
        if "revenue" in (request.text or ""):
            return page
        rows = tuple(row for row in page.rows if not str(row.get("doc_id", "")).startswith("report"))
        return page.model_copy(update={"rows": rows})
