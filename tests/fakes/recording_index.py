"""A search index that records its queries and returns given pages."""

from collections.abc import Sequence

from shared.platform.search import IndexRow, SearchIndex, SearchPage, SearchRequest


class RecordingIndex(SearchIndex):
    """An index that returns the next given page for each search, and repeats the last one."""

    def __init__(self, *pages: SearchPage) -> None:
        self.requests: list[SearchRequest] = []
        self._pages = list(pages)

    async def search(self, request: SearchRequest) -> SearchPage:
        self.requests.append(request)
        return self._pages.pop(0) if len(self._pages) > 1 else self._pages[0]

    async def upload(self, rows: Sequence[IndexRow]) -> None:
        raise AssertionError("a reader must not write")

    async def merge(self, rows: Sequence[IndexRow]) -> None:
        raise AssertionError("a reader must not write")

    async def delete(self, keys: Sequence[str]) -> None:
        raise AssertionError("a reader must not write")
