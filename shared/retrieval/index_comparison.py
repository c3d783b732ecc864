"""Makes the rows of one index those of another: missing ones first, then every row compared (decision 26).

Rows may come, change and go meanwhile. A row written here may be older than what a writer has just written,
so the caller compares again until nothing was written; `IndexMigration` says why that is enough.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing

from shared.platform.odata import search_in
from shared.platform.search import IndexRow, SearchIndex, SearchRequest

PAGE_ROWS = 100  # two vectors of 1,536 numbers are some 60 KB of JSON: 6 MB a page
PAGES_AT_ONCE = 4  # unmeasured on a real service; each holds two pages in memory
KEYS_ROWS = 1000  # the most that the service gives at once; keys alone are small
_END = "~"  # greater than every key, which has letters, digits, _ - = only

OnPage = Callable[[int, int], None]
"""How many rows a page had, and how many of them were written."""


class RowComparison:
    """Two indexes with the same key field. Only `target` is written."""

    def __init__(self, source: SearchIndex, target: SearchIndex, key: str, on_page: OnPage) -> None:
        """`on_page` is called with each page when it is done."""
        self._source = source
        self._target = target
        self._key = key
        self._on_page = on_page

    async def fill(self) -> None:
        """Copy the rows that the target lacks; those that it has are not read."""
        await self._each_page(self._missing(), self._copy)

    async def compare_all(self) -> set[str]:
        """Make every row equal; the keys of those that were not."""
        return await self._each_page(self._either(), self.compare)

    async def compare(self, keys: Sequence[str]) -> set[str]:
        """Make these rows equal, absent ones too; the keys of those that were not."""
        wanted, present = await self._rows(self._source, keys), await self._rows(self._target, keys)
        differing = [key for key, row in wanted.items() if present.get(key) != row]
        surplus = [key for key in present if key not in wanted]
        if differing:
            await self._target.upload([wanted[key] for key in differing])
        if surplus:
            await self._target.delete(surplus)
        self._on_page(len(keys), len(differing) + len(surplus))
        return {*differing, *surplus}

    async def compare_keys(self, keys: Sequence[str]) -> set[str]:
        """`compare` of any number of rows."""
        pages = (keys[start : start + PAGE_ROWS] for start in range(0, len(keys), PAGE_ROWS))
        return {key for page in pages for key in await self.compare(page)}

    async def _copy(self, keys: Sequence[str]) -> set[str]:
        rows = await self._rows(self._source, keys)
        await self._target.upload(list(rows.values()))
        self._on_page(len(keys), len(rows))
        return set()  # not remembered: a hundred million keys would not fit, and all are compared afterwards

    async def _each_page(
        self, keys: AsyncIterator[str], work: Callable[[Sequence[str]], Awaitable[set[str]]]
    ) -> set[str]:
        """Some pages at once; the next keys are read only when there is room for them."""
        room = asyncio.Semaphore(PAGES_AT_ONCE)
        written: set[str] = set()

        async def one(page: Sequence[str]) -> None:
            try:
                written.update(await work(page))
            finally:
                room.release()

        try:
            async with asyncio.TaskGroup() as group:
                async for page in _paged(keys):
                    await room.acquire()
                    group.create_task(one(page))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None  # one service, one fault: which page told it first is enough
        return written

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
        """Each key, and which index has it. A key comes twice if the service sorts otherwise than Python."""
        source, target = self._keys(self._source), self._keys(self._target)
        left, right = await anext(source, _END), await anext(target, _END)
        while (key := min(left, right)) != _END:
            yield key, key == left, key == right
            left, right = (
                await anext(source, _END) if key == left else left,
                await anext(target, _END) if key == right else right,
            )

    async def _keys(self, index: SearchIndex) -> AsyncIterator[str]:
        """All keys, by key and not by position: rows that come and go in between shift nothing."""
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
    # What the service adds to a row is not the row's; absent and null are the same there.
    return {name: value for name, value in row if not name.startswith("@") and value is not None}
