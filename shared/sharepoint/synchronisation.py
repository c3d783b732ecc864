"""One run over a library, in short steps that can be repeated. Each stores its position.

A run reads the changes, then visits what the changes don't reliably report:

    changes -> sweep (after a full enumeration) -> folders -> expiries -> permissions (nightly) -> idle

`close` follows when permissions are older than a day, and `remove` replaces all phases when the library is no
longer configured. Every run starts with the changes; interrupted full enumerations and nightly passes
continue where they stopped.
"""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, GroundworkError, RateLimitError
from shared.platform.telemetry import get_logger
from shared.sharepoint.client import BATCH, ResyncError
from shared.sharepoint.graph_models import DriveItem
from shared.sharepoint.mirror import FILES_AT_ONCE, Mirror, library_folder, permissions_digest
from shared.sharepoint.models import SyncReply, SyncStep
from shared.sharepoint.schedule import (
    has_expired_grants,
    has_failed_too_long,
    is_enumeration_due,
    is_pass_due,
    is_too_slow,
)
from shared.sharepoint.services import SharePointServices, configured
from shared.sharepoint.sidecars import hide_files
from shared.sharepoint.state import Item, Library, row_key
from shared.sharepoint.status import count_items

STEP_S = 60.0  # a longer activity would delay scale-in and be repeated completely after a crash
PIECE = 5 * BATCH  # items per piece of work: about ten seconds, which a crash repeats
NIGHTLY_SLICE = timedelta(minutes=8)  # per run, so that the next run starts on time
DELETIONS_TRUSTED = 20  # per run; a larger number is verified one by one if it exceeds a fifth of the library
DELETED_SHARE = 0.2
MAX_RESYNCS = 5  # per run; SharePoint may require another full enumeration during one
MAX_PENDING_FOLDERS = (
    1000  # about 40 KB of the library's row; a larger number is replaced by the whole library
)
DEFAULT_PAUSE_S = 30.0


async def advance(step: SyncStep, services: SharePointServices, now: datetime) -> SyncReply:
    """Synchronise a library for about a minute. Expected failures end the run and are
    stored in its status.
    """
    library, revision = await configured(services.libraries).library(step.library_id)
    if library is None:
        return SyncReply(following="done")
    progress = Progress(library, revision, services, now)
    try:
        is_done = await progress.advance(step)
    except ConflictError as conflict:
        if await progress.is_behind():
            # Another execution of the same run is ahead; continue from its state.
            return SyncReply(following="wait", pause_s=1.0)
        return await _reply_to(conflict, progress, step)
    except GroundworkError as failed:
        return await _reply_to(failed, progress, step)
    except Exception:
        # A defect must not keep documents open for longer than an outage does.
        if not await progress.close_if_overdue(GroundworkError.code):
            raise
        get_logger().exception("sharepoint.defect", library_id=step.library_id)
        return SyncReply(following="more")
    return SyncReply(following="done" if is_done else "more")


async def _reply_to(failed: GroundworkError, progress: "Progress", step: SyncStep) -> SyncReply:
    if await progress.close_if_overdue(failed.code):
        return SyncReply(following="more")
    if isinstance(failed, RateLimitError):
        return SyncReply(following="wait", pause_s=failed.retry_after_s or DEFAULT_PAUSE_S)
    get_logger().warning("sharepoint.run_failed", error_type=failed.code, library_id=step.library_id)
    return SyncReply(following="done")


class Progress:
    """The state of a run, and the operations that advance it."""

    def __init__(
        self,
        library: Library,
        revision: str | None,
        services: SharePointServices,
        now: datetime,
    ) -> None:
        self._library = library
        self._revision = revision
        self._client = configured(services.sharepoint)
        self._store = configured(services.libraries)
        self._services = services
        self._now = now

    async def advance(self, step: SyncStep) -> bool:
        """Work for about a minute, and return whether the run is complete."""
        until = time.monotonic() + STEP_S
        if self._library.run != step.run:
            await self._begin(step)
        while self._library.phase != "idle":
            if self._library.phase not in ("close", "remove") and is_too_slow(self._library, self._now):
                await self._save(error="PermissionsTooOld", phase="close", cursor="")
            await _PHASES[self._library.phase](self)
            if time.monotonic() >= until:
                break
        return self._library.phase == "idle"

    async def is_behind(self) -> bool:
        """Return whether another execution has written the library's row."""
        _, revision = await self._store.library(self._library.library_id)
        return revision != self._revision

    async def close_if_overdue(self, error_type: str) -> bool:
        """Store the error of a failed step. Return whether all documents must be hidden, because steps have
        failed for a day.
        """
        is_overdue = self._library.phase != "close" and has_failed_too_long(self._library, self._now)
        changes: dict[str, object] = {"phase": "close", "cursor": ""} if is_overdue else {}
        try:
            await self._save(error=error_type, **changes)
        except ConflictError:
            return False  # another execution is ahead
        return is_overdue

    async def _begin(self, step: SyncStep) -> None:
        library = self._library
        changes: dict[str, object] = {
            "run": step.run,
            "started_at": self._now,
            "first_started_at": library.first_started_at or self._now,
            "deleted": 0,
            "resyncs": 0,
        }
        if not step.is_configured:
            # If the library is configured again before all is deleted, it must be enumerated completely.
            changes |= {"phase": "remove", "cursor": "", "link": None, "enumerated_at": None}
        else:
            changes |= {"phase": "changes", "cursor": ""}
            if is_enumeration_due(library, self._now):
                changes |= {
                    "link": None,
                    "generation": library.generation + 1,
                    "enumerated_at": self._now,
                }
        await self._save(**changes)

    async def read_changes(self) -> None:
        """Apply a page of changes, then store the link to the next one."""
        library = self._library
        try:
            page = await self._client.changes(library.drive_id, library.link)
        except ResyncError as gone:
            if library.resyncs == MAX_RESYNCS:
                raise
            await self._save(
                link=gone.location,
                generation=library.generation + 1,
                enumerated_at=self._now,
                resyncs=library.resyncs + 1,
            )
            return
        latest = {item.id: item for item in page.value}  # an item may repeat; the last one counts
        mirror = self._mirror()
        deleted = [item.id for item in latest.values() if item.deleted is not None]
        await self._apply([item for item in latest.values() if item.deleted is None], mirror)
        await self._delete(deleted, mirror)
        count = self._library.deleted + len(deleted)
        if page.next_link is not None:
            await self._save(link=page.next_link, deleted=count)
        else:
            verified_at = max(filter(None, (library.verified_at, library.enumerated_at)), default=None)
            await self._save(
                link=page.delta_link, deleted=count, verified_at=verified_at, phase="sweep", cursor=""
            )

    async def _apply(self, items: Sequence[DriveItem], mirror: Mirror) -> None:
        """Apply items, folders first, because they decide which files are inside the configured folder.

        Changed folders, and folders listed after their contents, are stored as pending before the folders
        themselves. Otherwise a crash in between would hide the change from the next attempt.
        """
        changed = await mirror.inspect_folders([item for item in items if item.is_folder])
        await self._add_pending((*changed, *await mirror.unknown_ancestors(items)))
        await mirror.save_folders()
        await mirror.apply_files([item for item in items if not item.is_folder])

    async def _add_pending(self, folder_ids: Sequence[str]) -> None:
        pending = _joined(self._library.pending_folders, folder_ids)
        if pending != self._library.pending_folders:
            await self._save(pending_folders=pending)

    async def _delete(self, item_ids: Sequence[str], mirror: Mirror) -> None:
        """Remove deleted items. If a run deletes much of a library, each deletion is verified first."""
        count = self._library.deleted + len(item_ids)
        if count > DELETIONS_TRUSTED and count > DELETED_SHARE * self._library.counts.files:
            await self._verify(item_ids, mirror)
            return
        for item_id in item_ids:
            await self._remove(item_id, mirror)

    async def _remove(self, item_id: str, mirror: Mirror) -> None:
        # Before the removal, which deletes the row that identifies it as a folder.
        folder, _ = await self._store.item(self._library.library_id, "folder", item_id)
        if folder is not None:
            await self._add_pending([item_id])
        await mirror.remove(item_id)

    async def _verify_each(self, items: Sequence[Item], mirror: Mirror) -> None:
        for start in range(0, len(items), BATCH):
            await self._verify([item.item_id for item in items[start : start + BATCH]], mirror)

    async def _verify(self, item_ids: Sequence[str], mirror: Mirror) -> None:
        """Request the current state of items that may have been deleted, and apply or remove each."""
        items_by_id = await self._client.items(self._library.drive_id, item_ids)
        present = []
        for item_id, item in items_by_id.items():
            if item == 404:
                await self._remove(item_id, mirror)
            elif isinstance(item, int):
                await mirror.close(item_id, "permissions_unreadable")
            else:
                present.append(item)
        if present:
            await self._apply(present, mirror)

    async def sweep(self) -> None:
        """Verify items that the latest full enumeration didn't report."""
        for kind in ("file", "folder"):
            items = await self._store.items_after(self._library.library_id, kind, self._library.cursor)
            if items:
                stale = [item for item in items if item.generation < self._library.generation]
                piece, cursor = _first_piece(items, stale)
                await self._verify_each(piece, self._mirror())
                await self._save(cursor=cursor)
                return
            if kind == "file" and not self._library.cursor.startswith("folder"):
                await self._save(cursor="folder-")
        await self._compare_root()

    async def _compare_root(self) -> None:
        """Compare the root's permissions, because a change of the site's permissions may be reported nowhere
        else.
        """
        library = self._library
        lists = await self._client.permissions(library.drive_id, ["root"])
        current = permissions_digest(lists["root"])
        pending = library.pending_folders
        if current != library.root_permissions and library.root_permissions:
            pending = (_EVERYTHING,)
        await self._save(phase="folders", cursor="", root_permissions=current, pending_folders=pending)

    async def reread_folders(self) -> None:
        """Reread everything below folders that moved or whose permissions changed."""
        library = self._library
        folders = frozenset(library.pending_folders)
        items = await self._store.items_after(library.library_id, "file", library.cursor) if folders else []
        if not items:
            following = "expiries" if has_expired_grants(library, self._now) else "permissions"
            await self._save(phase=following, cursor="", pending_folders=())
            return
        mirror = self._mirror()
        below = [item for item in items if _EVERYTHING in folders or await mirror.is_below(item, folders)]
        piece, cursor = _first_piece(items, below)
        await self._verify_each(piece, mirror)
        await self._save(cursor=cursor)

    async def reread_expired(self) -> None:
        """Reread the permissions of documents with an expired grant."""
        library = self._library
        items = []
        if has_expired_grants(library, self._now):
            items = await self._store.items_after(library.library_id, "file", library.cursor)
        if not items:
            await self._save(phase="permissions", cursor="")
            return
        ended = [item for item in items if item.expires_at is not None and item.expires_at <= self._now]
        piece, cursor = _first_piece(items, ended)
        await self._mirror().refresh_permissions(piece)
        await self._save(cursor=cursor)

    async def refresh_permissions(self) -> None:
        """Reread the permissions of stored documents, in batches, for a few minutes of each run.

        The next run continues, so that changes don't wait until a large library is complete.
        """
        library = self._library
        cursor = library.permissions_cursor
        if cursor is None:
            if not is_pass_due(library, self._now):
                await self._finish()
                return
            cursor = ""
            await self._save(permissions_at=self._now, permissions_cursor=cursor)
        items = await self._store.items_after(library.library_id, "file", cursor)
        if not items:
            await self._save(permissions_cursor=None, is_closed=False, verified_at=library.permissions_at)
            await self._finish()
            return
        items = items[:PIECE]
        mirror = self._mirror()
        await mirror.refresh_permissions([item for item in items if item.blob is not None])
        await self._verify_each([item for item in items if item.skipped == "unreadable"], mirror)
        await self._save(permissions_cursor=row_key("file", items[-1].item_id))
        if library.started_at is not None and self._now - library.started_at >= NIGHTLY_SLICE:
            await self._finish()

    async def close(self) -> None:
        """Hide all documents, because permissions that are a day old may be wrong.

        Each step hides one sixteenth, selected by the first hex digit of the items' digests, to stay short.
        """
        library = self._library
        place = int(library.cursor or "0", 16)
        await hide_files(self._services.blobs, f"{library_folder(library)}{place:x}")
        if place < 15:
            await self._save(cursor=f"{place + 1:x}")
            return
        get_logger().error("sharepoint.library_closed", library_id=library.library_id)
        # An interrupted pass starts over, because the items that it visited are hidden now.
        await self._save(
            phase="idle", cursor="", is_closed=True, closed_at=self._now, permissions_cursor=None
        )

    async def remove(self) -> None:
        """Delete all data of a library that the settings no longer name."""
        library = self._library
        mirror = self._mirror()
        for kind in ("file", "folder"):
            items = (await self._store.items_after(library.library_id, kind, ""))[:PIECE]
            await run_together(*(mirror.remove(item.item_id) for item in items), at_once=FILES_AT_ONCE)
            if items:
                return
        await self._store.delete_library(library.library_id)
        self._library = library.model_copy(update={"phase": "idle"})

    async def _finish(self) -> None:
        counts, expires_at = await count_items(self._store, self._library.library_id)
        await self._save(
            phase="idle",
            cursor="",
            pending_folders=(),
            error=None,
            succeeded_at=self._now,
            counts=counts,
            expires_at=expires_at,
        )
        get_logger().info(
            "sharepoint.run_completed", library_id=self._library.library_id, result_count=counts.files
        )

    async def _save(self, **changes: object) -> None:
        changed = self._library.model_copy(update=changes)
        self._revision = await self._store.save_library(changed, self._revision)
        self._library = changed

    def _mirror(self) -> Mirror:
        settings = self._services.settings
        return Mirror(
            self._library,
            self._client,
            self._store,
            self._services.blobs,
            tenant=settings.identity.tenants[0],
            max_bytes=settings.ingestion.max_document_bytes,
            now=self._now,
        )


_EVERYTHING = "*"  # as a pending folder: the whole library
_PHASES = {
    "changes": Progress.read_changes,
    "sweep": Progress.sweep,
    "folders": Progress.reread_folders,
    "expiries": Progress.reread_expired,
    "permissions": Progress.refresh_permissions,
    "close": Progress.close,
    "remove": Progress.remove,
}


def _joined(pending: Sequence[str], folder_ids: Sequence[str]) -> tuple[str, ...]:
    folders = tuple(dict.fromkeys((*pending, *folder_ids)))
    return (_EVERYTHING,) if _EVERYTHING in folders or len(folders) > MAX_PENDING_FOLDERS else folders


def _first_piece(items: Sequence[Item], due: Sequence[Item]) -> tuple[Sequence[Item], str]:
    """Return the first batch of due items, and the key up to which no item needs another visit."""
    piece = due[:PIECE]
    last = piece[-1] if len(due) > PIECE else items[-1]
    return piece, row_key(last.kind, last.item_id)
