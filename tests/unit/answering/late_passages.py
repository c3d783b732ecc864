"""An index that finds the reports only when a search names their revenue."""

from shared.platform.search import SearchPage, SearchRequest
from tests.fakes.search_index import InMemorySearchIndex


class LateReports(InMemorySearchIndex):
    """Blocks whose reports a first search misses."""

    async def search(self, request: SearchRequest) -> SearchPage:
        page = await super().search(request)
        if "revenue" in (request.text or ""):
            return page
        rows = tuple(row for row in page.rows if not str(row.get("doc_id", "")).startswith("report"))
        return page.model_copy(update={"rows": rows})
