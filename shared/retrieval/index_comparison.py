"""Comparison of two indexes, which copies rows until both are equal: missing rows first, then a comparison of
all rows (decision 26).

Rows may change meanwhile, and a row copied here may be older than a concurrent write. So the caller compares
again until nothing was copied; `IndexMigration` explains why that suffices.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing

from shared.platform.odata import search_in
from shared.platform.search import IndexRow, SearchIndex, SearchRequest

PAGE_ROWS = 100  # a row with two vectors of 1,536 numbers takes about 60 KB as JSON, so a page takes 6 MB
PAGES_AT_ONCE = 4  # each comparison holds two pages in memory; not measured on a real service
KEYS_ROWS = 1000  # maximum page size of the service, which is affordable because keys are small
_END = "~"  # this sorts after every key, because keys consist of letters, digits, _, - and =

OnPage = Callable[[int, int], None]
"""Callback after a page, with its number of rows and the number of rows written to the target."""


class RowComparison:
    """A comparison of two indexes with the same key field. Only `target` is written."""

    def __init__(self, source: SearchIndex, target: SearchIndex, key: str, on_page: OnPage) -> None:
        """Create a comparison. `on_page` is called after each page of rows."""
        self._source = source
        self._target = target
        self._key = key
        self._on_page = on_page

    async def fill(self) -> None:
        """Copy the rows that the target lacks. Rows that exist in both indexes are not compared."""
        await self._each_page(self._missing(), self._copy)

    async def compare_all(self) -> set[str]:
        """Compare all rows and correct the target. Return the keys of the rows that differed."""
        return await self._each_page(self._either(), self.compare)

    async def compare(self, keys: Sequence[str]) -> set[str]:
        """Compare the rows with these keys and correct the target. Return the keys of the rows that
        differed.
        """
        expected, present = await self._rows(self._source, keys), await self._rows(self._target, keys)
        differing = [key for key, row in expected.items() if present.get(key) != row]
        surplus = [key for key in present if key not in expected]
        if differing:
            await self._target.upload([expected[key] for key in differing])
        if surplus:
            await self._target.delete(surplus)
        self._on_page(len(keys), len(differing) + len(surplus))
        return {*differing, *surplus}

    async def compare_keys(self, keys: Sequence[str]) -> set[str]:
        """Compare any number of rows page by page and correct the target. Return the keys of the rows that
        differed.
        """
        pages = (keys[start : start + PAGE_ROWS] for start in range(0, len(keys), PAGE_ROWS))
        return {key for page in pages for key in await self.compare(page)}

    async def _copy(self, keys: Sequence[str]) -> set[str]:
        rows = await self._rows(self._source, keys)
        await self._target.upload(list(rows.values()))
        self._on_page(len(keys), len(rows))
        return set()  # the copied keys are not returned, because millions would not fit into memory

    async def _each_page(
        self, keys: AsyncIterator[str], work: Callable[[Sequence[str]], Awaitable[set[str]]]
    ) -> set[str]:
        """Call `work` for each page of keys, with at most four calls at a time, and return all keys that the
        calls return.
        """
        room = asyncio.Semaphore(PAGES_AT_ONCE)
        changed_keys: set[str] = set()

        async def one(page: Sequence[str]) -> None:
            try:
                changed_keys.update(await work(page))
            finally:
                room.release()

        try:
            async with asyncio.TaskGroup() as group:
                async for page in _paged(keys):
                    await room.acquire()
                    group.create_task(one(page))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None  # all pages use one service, so the first error is enough
        return changed_keys

    async def _missing(self) -> AsyncIterator[str]:
        async with aclosing(self._walked()) as walked:
            async for key, in_source, in_target in walked:
                if in_source and not in_target:
                    yield key

    async def _either(self) -> AsyncIterator[str]:
        async with aclosing(self._walked()) as walked:
            async for key, _, _ in walked:
                yield key

    async def _walked(self) -> AsyncGenerator[tuple[str, bool, bool]]:
        """Yield each key and whether source and target contain it. A key may come twice if the service sorts
        differently from Python.
        """
        source, target = self._keys(self._source), self._keys(self._target)
        left, right = await anext(source, _END), await anext(target, _END)
        while (key := min(left, right)) != _END:
            yield key, key == left, key == right
            left, right = (
                await anext(source, _END) if key == left else left,
                await anext(target, _END) if key == right else right,
            )

    async def _keys(self, index: SearchIndex) -> AsyncIterator[str]:
        """Yield all keys of an index in order. Each page starts after the last key, so concurrent changes
        cannot shift pages.
        """
        after: str | None = None
        while True:
            page = await index.search(
                SearchRequest(
                    filter=None if after is None else f"{self._key} gt '{after}'",
                    select=(self._key,),
                    order_by=(self._key,),
                    top=KEYS_ROWS,
                )
            )
            if not page.rows:
                return
            for row in page.rows:
                after = str(row[self._key])
                yield after

    async def _rows(self, index: SearchIndex, keys: Sequence[str]) -> dict[str, IndexRow]:
        page = await index.search(SearchRequest(filter=search_in(self._key, keys), top=len(keys)))
        return {row[self._key]: _fields(row.items()) for row in page.rows}


async def _paged(keys: AsyncIterator[str]) -> AsyncIterator[list[str]]:
    page: list[str] = []
    async for key in keys:
        page.append(key)
        if len(page) == PAGE_ROWS:
            yield page
            page = []
    if page:
        yield page


def _fields(row: Iterable[tuple[str, object]]) -> IndexRow:
    # Annotations added by the service are ignored, and null counts as missing.
    return {name: value for name, value in row if not name.startswith("@") and value is not None}
