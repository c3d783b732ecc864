"""State of the synchronisation for each library and item: one table, one partition per library.

Every write is conditional on the version that was read, so that an outdated execution can't overwrite the
writes of its successor.
"""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar

from pydantic import Field

from shared.platform.hashing import digest
from shared.platform.models import Model
from shared.platform.odata import quote
from shared.platform.tables import Entity, Table, joined_text, revision_of, split_text
from shared.sharepoint.models import Counts

ItemKind = Literal["file", "folder"]
Phase = Literal["idle", "changes", "sweep", "folders", "expiries", "permissions", "close", "remove"]

_LIBRARY_KEY = "library"
_LIBRARIES = "libraries"
_SCAN_ROWS = 500  # rows per read when all items of a library are visited


class Library(Model):
    """The state of one library.

    Attributes:
        address: the configured URL to which this library belongs.
        owner: object id of the owner if it is a OneDrive.
        folder_id: the folder to which the URL limits the library; None = all of it.
        link: next link or delta link of the changes.
        generation: number of the current full enumeration. Items of earlier ones may no longer exist.
        cursor: row key of the last item that the current phase has visited.
        pending_folders: folders whose descendants must be reread.
        run: id of the timer's run to which the phases belong.
        deleted: number of deletions in this run.
        resyncs: number of full enumerations that SharePoint required in this run.
        first_started_at: start of the first run.
        started_at: start of the latest run.
        succeeded_at: end of the latest successful run.
        permissions_at: start of the latest pass over all permissions.
        permissions_cursor: row key of the last item visited by that pass; None once it is complete.
        enumerated_at: start of the latest full enumeration.
        verified_at: start of the latest complete full enumeration or pass over all permissions.
        expires_at: the earliest expiry of an effective grant.
        is_closed: whether everything is hidden because synchronisation has failed for too long. A complete
            pass over all permissions ends this.
        closed_at: time at which everything was last hidden.
        error: error type of the latest failed run; None after a success.
    """

    library_id: str
    address: str
    drive_id: str
    site_url: str
    name: str
    web_url: str
    owner: str | None = None
    folder_id: str | None = None
    phase: Phase = "idle"
    link: str | None = Field(default=None, repr=False)
    generation: int = 0
    cursor: str = ""
    pending_folders: tuple[str, ...] = ()
    root_permissions: str = ""
    run: str = ""
    deleted: int = 0
    resyncs: int = 0
    first_started_at: datetime | None = None
    started_at: datetime | None = None
    succeeded_at: datetime | None = None
    permissions_at: datetime | None = None
    permissions_cursor: str | None = None
    enumerated_at: datetime | None = None
    verified_at: datetime | None = None
    expires_at: datetime | None = None
    is_closed: bool = False
    closed_at: datetime | None = None
    error: str | None = None
    counts: Counts = Counts()


class Item(Model):
    """The state of one file or folder.

    Attributes:
        content: mark of the stored content; empty while the item's blobs are being moved or deleted.
        blob: name of the blob; None if nothing is stored.
        access: digest of the stored sidecar, or of a folder's permissions.
        problem: reason why the stored document is hidden.
        skipped: reason why the item isn't stored.
    """

    item_id: str
    kind: ItemKind
    name: str = ""
    parent_id: str | None = None
    generation: int = 0
    content: str = ""
    blob: str | None = None
    access: str = ""
    problem: str | None = None
    skipped: str | None = None
    expires_at: datetime | None = None


State = TypeVar("State", bound=Model)


class LibraryStore:
    """Rows of libraries and their items."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def ensure_table(self) -> None:
        """Create the table unless it exists."""
        await self._table.ensure()

    async def library(self, library_id: str) -> tuple[Library | None, str | None]:
        """Return a library and its revision, or None and None."""
        return _parsed(await self._table.get(library_id, _LIBRARY_KEY), Library)

    async def save_library(self, library: Library, revision: str | None) -> str:
        """Write a library over the revision that was read; return the new revision.

        Raises:
            ConflictError: another execution has written it.
        """
        if revision is None:
            await self._table.put({"PartitionKey": _LIBRARIES, "RowKey": library.library_id})
        entity = {"PartitionKey": library.library_id, "RowKey": _LIBRARY_KEY}
        return await self._table.swap({**entity, **split_text(library.model_dump_json())}, revision)

    async def delete_library(self, library_id: str) -> None:
        """Delete the rows of a library after its items were deleted."""
        await self._table.delete(library_id, _LIBRARY_KEY)
        await self._table.delete(_LIBRARIES, library_id)

    async def libraries(self) -> list[Library]:
        """Return all libraries, in the order of their ids."""
        condition = f"PartitionKey eq {quote(_LIBRARIES)}"
        ids = [str(row["RowKey"]) async for row in self._table.query(condition)]
        libraries = [(await self.library(library_id))[0] for library_id in ids]
        return [library for library in libraries if library is not None]

    async def item(self, library_id: str, kind: ItemKind, item_id: str) -> tuple[Item | None, str | None]:
        """Return an item and its revision, or None and None."""
        return _parsed(await self._table.get(library_id, row_key(kind, item_id)), Item)

    async def save_item(self, library_id: str, item: Item, revision: str | None) -> str:
        """Write an item over the revision that was read; return the new revision.

        Raises:
            ConflictError: another execution has written it.
        """
        entity: Entity = {"PartitionKey": library_id, "RowKey": row_key(item.kind, item.item_id)}
        entity["generation"] = item.generation
        return await self._table.swap({**entity, **split_text(item.model_dump_json())}, revision)

    async def delete_item(self, library_id: str, item: Item) -> None:
        """Delete an item's row. A missing row is ignored."""
        await self._table.delete(library_id, row_key(item.kind, item.item_id))

    async def items_after(self, library_id: str, kind: ItemKind, cursor: str) -> list[Item]:
        """Return up to 500 items whose row keys follow `cursor`, in order."""
        lower, upper = max(cursor, f"{kind}-"), f"{kind}."  # in ASCII, "." follows "-"
        keys = f"RowKey gt {quote(lower)} and RowKey lt {quote(upper)}"
        condition = f"PartitionKey eq {quote(library_id)} and {keys}"
        rows = await self._table.first(condition, _SCAN_ROWS)
        return [Item.from_stored(joined_text(row)) for row in rows]

    async def items(self, library_id: str, kind: ItemKind) -> AsyncIterator[Item]:
        """Yield every item of a kind, in bounded memory."""
        cursor = ""
        while page := await self.items_after(library_id, kind, cursor):
            for item in page:
                yield item
            cursor = row_key(kind, page[-1].item_id)


def row_key(kind: ItemKind, item_id: str) -> str:
    """Return an item's row key. Graph ids may contain characters that aren't allowed in keys."""
    return f"{kind}-{digest(item_id)[:32]}"


def _parsed(row: Mapping[str, Any] | None, kind: type[State]) -> tuple[State | None, str | None]:
    return (None, None) if row is None else (kind.from_stored(joined_text(row)), revision_of(row))
