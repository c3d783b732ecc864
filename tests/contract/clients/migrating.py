"""A small index behind an alias, with its writers and its migration."""

import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.platform.azure_search import AzureSearchIndex
from shared.platform.search import IndexRow, SearchIndex, SearchPage, SearchRequest
from shared.retrieval.index_admin import AzureSearchAdmin
from shared.retrieval.migration import IndexMigration
from shared.retrieval.mirrored_index import MirroredIndex, WriteTargets
from shared.wiring import Connections
from tests.contract.clients.test_search_index import definition
from tests.servers import unique_name

KEPT_S = 0.03
SETTLE_S = 0.1  # longer than an alias is cached; tests with concurrent writes need the longer time below
BUSY_SETTLE_S = 3.0
ROWS = 250  # fills three pages

Hook = Callable[[], Awaitable[None]]


def row(number: int, *readers: str, content: str = "valve") -> IndexRow:
    return {
        "block_id": f"b{number:04}",
        "content": content,
        "kind": None,
        "page_number": number,
        "content_vector": [1.0, number / 7, 0.0],
        "access_control_list": list(readers or ("*",)),
    }


def before(name: str, **changes: Any) -> dict[str, Any]:
    """Return the schema of the previous version, in which `content` isn't filterable."""
    return next_definition(name, filterable=False, **changes)


def next_definition(alias: str, **changes: Any) -> dict[str, Any]:
    """Return the schema of the next version, in which `content` is filterable. This change requires a new
    index.
    """
    schema = definition(alias)
    for one in schema["fields"]:
        if one["name"] == "content":
            one.update({"filterable": True, **changes})
    return schema


@dataclass
class Hooked(SearchIndex):
    """An index that runs a test's hook right before its uploads and deletions."""

    inner: SearchIndex
    before_write: Hook

    async def search(self, request: SearchRequest) -> SearchPage:
        return await self.inner.search(request)

    async def upload(self, rows: Sequence[IndexRow]) -> None:
        await self.before_write()
        await self.inner.upload(rows)

    async def merge(self, rows: Sequence[IndexRow]) -> None:
        await self.inner.merge(rows)

    async def delete(self, keys: Sequence[str]) -> None:
        await self.before_write()
        await self.inner.delete(keys)


@dataclass
class World:
    """An alias with its index, as a running app sees it."""

    to: Connections
    alias: str = field(default_factory=lambda: unique_name("alias"))
    old: str = field(default_factory=lambda: unique_name("old"))

    @property
    def new(self) -> str:
        return f"{self.alias}-v2"

    def opens(self, physical: str, absent_ok: bool = False) -> AzureSearchIndex:
        return AzureSearchIndex(
            self.to.search_index(physical), physical, timeout_s=30, key_field="block_id", absent_ok=absent_ok
        )

    def app(self) -> MirroredIndex:
        """Return the index as a process of the app accesses it."""
        targets = WriteTargets(self.to.search_admin, timeout_s=30, kept_s=KEPT_S)
        return MirroredIndex(self.opens(self.alias), self.alias, targets, self.opens)

    def admin(self) -> AzureSearchAdmin:
        return AzureSearchAdmin(self.to.search_admin, timeout_s=30)

    def migration(
        self,
        schema: dict[str, Any] | None = None,
        *,
        before_copying: Hook | None = None,
        version: int = 2,
        settle_s: float = SETTLE_S,
    ) -> IndexMigration:
        """Return a migration as a new operator process would run it. `before_copying` is called between
        reading and writing a page.
        """

        def opens(physical: str, absent_ok: bool = False) -> SearchIndex:
            index = self.opens(physical, absent_ok)
            return Hooked(index, before_copying) if before_copying else index

        return IndexMigration(
            self.to.search_admin,
            opens,
            schema or next_definition(self.alias),
            version=version,
            timeout_s=30,
            settle_s=settle_s,
        )

    async def rows_of(self, name: str) -> dict[str, IndexRow]:
        page = await self.opens(name).search(SearchRequest(order_by=("block_id",), top=5000))
        return {
            index_row["block_id"]: {key: value for key, value in index_row.items() if not key.startswith("@")}
            for index_row in page.rows
        }

    async def readers(self, name: str, number: int) -> list[str] | None:
        index_row = (await self.rows_of(name)).get(f"b{number:04}")
        return None if index_row is None else list(index_row["access_control_list"])


async def made_world(to: Connections, rows: int = ROWS) -> World:
    """Create the index of the previous version with its rows, and an alias for it."""
    world = World(to)
    await world.admin().ensure_index(before(world.old))
    await world.opens(world.old).upload([row(number) for number in range(rows)])
    await world.migration().adopt(world.old)
    return world


def once(hook: Hook, at: int = 1) -> Hook:
    """Return a hook that acts only on its call number `at`."""
    calls = itertools.count(1)

    async def run() -> None:
        if next(calls) == at:
            await hook()

    return run
