"""Mirrors items of one library into the documents container: the sidecar first, then the file.

A file without a sidecar would get the default access list, so its sidecar is always stored first. Permissions
are read after the sidecar's current version, which the write then replaces conditionally; so an outdated
execution can't reopen a document.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.documents.ids import SHAREPOINT, SIDECAR_SUFFIX
from shared.ingestion.registry import format_of
from shared.ingestion.uploads import clean_filename
from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.errors import (
    BadDocumentError,
    CallerError,
    ConflictError,
    DependencyError,
    NotFoundError,
    RateLimitError,
)
from shared.platform.hashing import digest
from shared.platform.names import DOCUMENTS
from shared.sharepoint.client import SharePointClient
from shared.sharepoint.grants import Access, decide_access, grants_of
from shared.sharepoint.graph_models import DriveItem, Permission
from shared.sharepoint.rosters import RosterBook
from shared.sharepoint.sidecars import hide_files, read_sidecar, sidecar_text, source_url
from shared.sharepoint.state import Item, Library, LibraryStore

FILES_AT_ONCE = 4  # unmeasured; no limit is published, and peers were throttled with more
_SIDECAR_TRIES = 5
_CLOSED = Access(problem="permissions_unreadable")


@dataclass(frozen=True)
class _Sidecar:
    """A sidecar with the access it grants, and the expiry of that access."""

    content: str
    access: Access
    expires_at: datetime | None


def library_folder(library: Library) -> str:
    """Return the folder of a library's blobs."""
    return f"{SHAREPOINT}/{library.library_id[:16]}/"


def blob_folder(library: Library, item_id: str) -> str:
    """Return the folder of an item's blobs. It stays the same when the item moves within its library."""
    return f"{library_folder(library)}{digest(item_id)[:32]}/"


class Mirror:
    """Applies the state of items to the container. Each step uses a new object, so that it reads each group
    once.
    """

    def __init__(
        self,
        library: Library,
        client: SharePointClient,
        store: LibraryStore,
        blobs: BlobStore,
        *,
        tenant: str,
        max_bytes: int,
        now: datetime,
    ) -> None:
        """Create a mirror.

        Args:
            tenant: the organisation's id, for grants to everyone.
            max_bytes: maximum size of mirrored files.
        """
        self._library = library
        self._client = client
        self._store = store
        self._blobs = blobs
        self._tenant = tenant
        self._max_bytes = max_bytes
        self._now = now
        self._rosters = RosterBook(client, library.site_url)
        self._folders: dict[str, Item | None] = {}
        self._unsaved: dict[str, tuple[Item, str | None]] = {}

    async def inspect_folders(self, folders: Sequence[DriveItem]) -> tuple[str, ...]:
        """Return the folders that moved or whose permissions changed, without storing anything."""
        permissions = await self._client.permissions(
            self._library.drive_id, [folder.id for folder in folders]
        )
        changed = []
        for folder in folders:
            stored, revision = await self._store.item(self._library.library_id, "folder", folder.id)
            current = Item(
                item_id=folder.id,
                kind="folder",
                name=folder.name or "",
                parent_id=folder.parent.id,
                generation=self._library.generation,
                access=permissions_digest(permissions[folder.id]),
            )
            self._folders[folder.id] = current
            self._unsaved[folder.id] = (current, revision)
            if stored is not None and (stored.parent_id, stored.access) != (
                current.parent_id,
                current.access,
            ):
                changed.append(folder.id)
        return tuple(changed)

    async def save_folders(self) -> None:
        """Store the inspected folders. Call it after storing which of them changed."""
        for folder, revision in self._unsaved.values():
            await self._store.save_item(self._library.library_id, folder, revision)
        self._unsaved.clear()

    async def apply_files(self, files: Sequence[DriveItem]) -> None:
        """Mirror new and changed files."""
        permissions = await self._client.permissions(self._library.drive_id, [file.id for file in files])
        await run_together(
            *(self._apply_file(file, permissions[file.id]) for file in files), at_once=FILES_AT_ONCE
        )

    async def refresh_permissions(self, items: Sequence[Item]) -> None:
        """Reread the permissions of stored documents and rewrite the sidecars that differ."""
        permissions = await self._client.permissions(self._library.drive_id, [item.item_id for item in items])
        await run_together(
            *(self._refresh(item, permissions[item.item_id]) for item in items), at_once=FILES_AT_ONCE
        )

    async def close(self, item_id: str, problem: str) -> None:
        """Hide all stored files of an item, including copies that its row doesn't name."""
        await hide_files(self._blobs, blob_folder(self._library, item_id))
        stored, revision = await self._store.item(self._library.library_id, "file", item_id)
        if stored is not None and stored.problem != problem:
            closed = stored.model_copy(update={"problem": problem})
            await self._store.save_item(self._library.library_id, closed, revision)

    async def remove(self, item_id: str) -> None:
        """Delete the stored data of a deleted item: the file, then its sidecar, then its row."""
        item, revision = await self._store.item(self._library.library_id, "file", item_id)
        if item is not None:
            await self._mark(item, item, "deleted", revision)
        await self._delete_blobs(item_id)
        if item is not None:
            await self._store.delete_item(self._library.library_id, item)
        folder, _ = await self._store.item(self._library.library_id, "folder", item_id)
        if folder is not None:
            await self._store.delete_item(self._library.library_id, folder)

    async def is_below(self, item: Item, folder_ids: frozenset[str]) -> bool:
        """Return whether one of the folders is an ancestor of an item."""
        parent_id, seen = item.parent_id, set[str]()
        while parent_id is not None and parent_id not in seen:
            if parent_id in folder_ids:
                return True
            seen.add(parent_id)
            folder = await self._folder(parent_id)
            parent_id = folder.parent_id if folder else None
        return False

    async def unknown_ancestors(self, items: Sequence[DriveItem]) -> tuple[str, ...]:
        """Return the folders above the items that have not been listed yet.

        Their permissions are unknown, and so is whether they are inside the configured folder.
        """
        unknown: dict[str, None] = {}
        for item in items:
            parent_id, seen = item.parent.id, set[str]()
            while parent_id is not None and parent_id not in seen:
                seen.add(parent_id)
                folder = await self._folder(parent_id)
                if folder is None:
                    unknown[parent_id] = None
                parent_id = folder.parent_id if folder else None
        return tuple(unknown)

    async def _folder(self, item_id: str) -> Item | None:
        if item_id not in self._folders:
            folder, _ = await self._store.item(self._library.library_id, "folder", item_id)
            self._folders[item_id] = folder
        return self._folders[item_id]

    async def _apply_file(self, file: DriveItem, permissions: tuple[Permission, ...] | None) -> None:
        stored, revision = await self._store.item(self._library.library_id, "file", file.id)
        item = (stored or Item(item_id=file.id, kind="file")).model_copy(
            update={
                "name": file.name or (stored.name if stored else ""),
                "parent_id": file.parent.id,
                "generation": self._library.generation,
            }
        )
        reason = await self._reason_to_skip(file, item)
        revision = await self._mark(item, stored, reason, revision)
        if reason == "draft" and item.blob is not None and item.content:
            # The stored file is the last published version. Without a mark, an attempt died while moving it.
            item = await self._with_access(item, item.blob, file.web_url, permissions)
        elif reason is not None:
            await self._delete_blobs(item.item_id)
            item = item.model_copy(
                update={
                    "blob": None,
                    "content": "",
                    "access": "",
                    "problem": None,
                    "skipped": reason,
                    "expires_at": None,
                }
            )
        else:
            item = await self._stored(item, file, permissions)
        await self._store.save_item(self._library.library_id, item, revision)

    async def _reason_to_skip(self, file: DriveItem, item: Item) -> str | None:
        if file.package is not None or file.file is None:
            return "not_a_file"  # a notebook
        if self._library.folder_id and not await self.is_below(item, frozenset({self._library.folder_id})):
            return "outside_folder"
        reasons = {
            "malware": file.malware is not None,
            "too_large": file.size > self._max_bytes,
            "draft": file.publication.level != "published",
            "format": not _is_supported(item.name),
        }
        return next((reason for reason, applies in reasons.items() if applies), None)

    async def _stored(self, item: Item, file: DriveItem, permissions: tuple[Permission, ...] | None) -> Item:
        target, old = self._target(item), item.blob
        item = await self._with_access(item, target, file.web_url, permissions)
        if old != target or item.content != file.content_mark:
            try:
                await self._blobs.write_stream(
                    DOCUMENTS, target, self._client.content(self._library.drive_id, item.item_id)
                )
            except RateLimitError:
                raise
            except (NotFoundError, ConflictError, DependencyError):
                # Encrypted, locked or just deleted. Other files must not wait; the nightly pass retries.
                if old is not None and old != target:
                    item = await self._with_access(item, old, file.web_url, permissions)
                elif not item.content:
                    old = None  # the age of anything that the first attempt left is unknown
                if old != target:
                    await self._delete_blobs(item.item_id, keep=old)
                return item.model_copy(update={"blob": old, "skipped": "unreadable"})
        if old is not None and (old != target or not item.content):
            await self._delete_blobs(item.item_id, keep=target)
        return item.model_copy(update={"blob": target, "content": file.content_mark, "skipped": None})

    def _target(self, item: Item) -> str:
        return blob_folder(self._library, item.item_id) + clean_filename(item.name)

    async def _mark(
        self, item: Item, stored: Item | None, reason: str | None, revision: str | None
    ) -> str | None:
        """Store that an item's blobs are about to be written, moved or deleted; return the new revision.

        If this attempt dies, the next one may find another state in SharePoint. The mark prevents it from
        mistaking remaining blobs for the stored file, and lets the nightly pass and the sweep find them.
        """
        marked = (stored or item).model_copy(update={"content": ""})
        if reason is None:
            target = self._target(item)
            is_marked = item.blob == target
            marked = marked.model_copy(update={"blob": marked.blob or target})
        else:
            is_marked = reason == "draft" or stored is None
        if is_marked or marked == stored:
            return revision
        return await self._store.save_item(self._library.library_id, marked, revision)

    async def _with_access(
        self, item: Item, blob: str, web_url: str | None, permissions: tuple[Permission, ...] | None
    ) -> Item:
        """Write the sidecar of a blob unless it is unchanged.

        The comparison uses the sidecar itself, because the row is outdated if an attempt died between the two
        writes.
        """
        target = await self._target_sidecar(item, web_url, permissions)
        target = await self._write_sidecar(item, blob, web_url, target)
        return item.model_copy(
            update={
                "access": digest(target.content),
                "problem": target.access.problem,
                "expires_at": target.expires_at,
            }
        )

    async def _write_sidecar(self, item: Item, blob: str, web_url: str | None, target: _Sidecar) -> _Sidecar:
        """Create or replace a sidecar and return it.

        To replace an existing sidecar, the permissions are read again, because the given ones may be older
        than it.
        """
        for attempt in range(_SIDECAR_TRIES):
            present, etag = await read_sidecar(self._blobs, blob)
            if present == target.content:
                return target
            if etag is not None or attempt > 0:
                lists = await self._client.permissions(self._library.drive_id, [item.item_id])
                target = await self._target_sidecar(item, web_url, lists[item.item_id])
            if present == target.content:
                return target
            try:
                await self._blobs.write_version(
                    DOCUMENTS, blob + SIDECAR_SUFFIX, target.content.encode(), etag=etag
                )
            except ConflictError:
                continue
            return target
        raise DependencyError("Another execution keeps writing the same access list.")

    async def _target_sidecar(
        self, item: Item, web_url: str | None, permissions: tuple[Permission, ...] | None
    ) -> _Sidecar:
        access, expires_at = await self._access(permissions)
        return _Sidecar(sidecar_text(access, item.name, web_url), access, expires_at)

    async def _access(self, permissions: tuple[Permission, ...] | None) -> tuple[Access, datetime | None]:
        if permissions is None:
            return _CLOSED, None
        grants = grants_of(permissions, self._now)
        rosters = await self._rosters.resolve(grants)
        access = decide_access(grants, rosters, tenant=self._tenant, owner=self._library.owner)
        return access, grants.expires_at

    async def _refresh(self, item: Item, permissions: tuple[Permission, ...] | None) -> None:
        if item.blob is None:
            return
        stored, revision = await self._store.item(self._library.library_id, "file", item.item_id)
        if stored is None or stored.blob is None:
            return
        if not stored.content:  # an attempt died while it moved the file
            await self._delete_blobs(stored.item_id, keep=stored.blob)
        sidecar, _ = await read_sidecar(self._blobs, stored.blob)
        refreshed = await self._with_access(stored, stored.blob, source_url(sidecar), permissions)
        if refreshed != stored:
            await self._store.save_item(self._library.library_id, refreshed, revision)

    async def _delete_blobs(self, item_id: str, *, keep: str | None = None) -> None:
        """Delete the blobs in an item's folder except `keep`, each file before its sidecar.

        The folder is listed, because an attempt that died may have left a file that no row names.
        """
        folder = blob_folder(self._library, item_id)
        names = [blob.name async for blob in self._blobs.list_blobs(DOCUMENTS, folder)]
        keep_names = {keep, f"{keep}{SIDECAR_SUFFIX}"}
        for name in sorted(names, key=lambda name: name.endswith(SIDECAR_SUFFIX)):
            if name not in keep_names:
                await self._blobs.delete(DOCUMENTS, name)


def permissions_digest(permissions: tuple[Permission, ...] | None) -> str:
    """Return a digest of a permission list, independent of its order. An unreadable list has a digest of its
    own.
    """
    if permissions is None:
        return "unreadable"
    return digest(*sorted(permission.model_dump_json() for permission in permissions))


def _is_supported(name: str) -> bool:
    try:
        format_of(clean_filename(name))
    except (BadDocumentError, CallerError):
        return False
    return True
