"""Blob storage: the store and its data models. Large blobs are streamed in pieces."""

# Annotations remain strings, so that the SDK's types are not imported at startup.
from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from azure.core import MatchConditions
from pydantic import Field

from shared.platform.calls import (
    BLOB_SIGNING,
    BLOBS,
    STORAGE_LIMITS,
    PieceClock,
    StatusTranslation,
    StorageLimits,
    azure_errors,
    call_span,
    calling,
    each_within,
    listed,
)
from shared.platform.concurrency import run_together
from shared.platform.connections import UPLOAD_PIECE_BYTES, Connection
from shared.platform.errors import ConflictError, GroundworkError, NotFoundError
from shared.platform.loading import load
from shared.platform.models import Model, Stored

if TYPE_CHECKING:
    from azure.storage.blob import BlobBlock, ContentSettings, UserDelegationKey
    from azure.storage.blob.aio import BlobClient, BlobServiceClient


class BlobProperties(Model):
    """Properties of a blob without its content. Metadata keys are lowercase."""

    name: str
    size_bytes: int
    etag: str
    modified_at: datetime | None = None
    content_type: str | None = None
    metadata: dict[str, str] = Field(default_factory=dict)


class ByteSpan(Model):
    """Byte range of a file: `length` bytes (at least 1) from offset `first`, which counts from 0."""

    first: int
    length: int


class SignedUrl(Model):
    """URL that grants access to anyone who knows it. Never log or store it."""

    url: str = Field(repr=False)
    expires_at: datetime


CLOCK_SKEW = timedelta(minutes=5)
KEY_LIFETIME = timedelta(hours=12)
# A key that expires sooner than this is replaced. Signed URLs are valid for at most two hours.
KEY_RESERVE = timedelta(hours=3)


class BlobSigner:
    """Signer that creates signed URLs for blobs. It caches the user delegation key until shortly before the
    key expires.
    """

    def __init__(
        self, connection: Connection[BlobServiceClient], *, timeout_s: float = STORAGE_LIMITS.call_s
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._key: UserDelegationKey | None = None
        self._key_ends = datetime.min.replace(tzinfo=UTC)
        self._asking = asyncio.Lock()

    async def sign(self, container: str, name: str, permission: str, lifetime_s: float) -> SignedUrl:
        """Return a signed URL for a blob. It is valid for `lifetime_s`, or until the delegation key expires.

        Args:
            permission: SAS permission letters: r = read, c = create, w = write.

        Raises:
            AuthenticationError: the app's identity lacks permission to request a delegation key.
        """
        client = await self._connection.opened()
        moment = datetime.now(UTC)
        expiry = moment + timedelta(seconds=lifetime_s)
        signing = await self._signing(moment)
        if "user_delegation_key" in signing:
            expiry = min(expiry, self._key_ends)
        blob = client.get_blob_client(container, name)
        signature = load("azure.storage.blob", "generate_blob_sas")(
            str(client.account_name),
            container,
            name,
            permission=permission,
            start=moment - CLOCK_SKEW,
            expiry=expiry,
            # Plain HTTP is only allowed for an emulator.
            protocol="https" if blob.url.startswith("https://") else "https,http",
            **signing,
        )
        return SignedUrl(url=f"{blob.url}?{signature}", expires_at=expiry.replace(microsecond=0))

    async def _signing(self, moment: datetime) -> dict[str, Any]:
        limit_s = self._timeout_s
        async with calling(self._connection, BLOB_SIGNING, timeout_s=limit_s, operation="sign") as client:
            account_key = getattr(client.credential, "account_key", None)
            if account_key:
                return {"account_key": account_key}
            async with self._asking:
                if self._key is None or self._key_ends - moment < KEY_RESERVE:
                    ends = moment + KEY_LIFETIME
                    self._key = await client.get_user_delegation_key(moment - CLOCK_SKEW, ends)
                    self._key_ends = ends
        return {"user_delegation_key": self._key}


# Maximum number of concurrent deletions (unmeasured). A document has at most a few hundred figures.
DELETES_AT_ONCE = 16


class BlobStore:
    """The application's blob containers, all in one storage account."""

    def __init__(
        self, connection: Connection[BlobServiceClient], limits: StorageLimits = STORAGE_LIMITS
    ) -> None:
        self._connection = connection
        self._limits = limits
        self._signer = BlobSigner(connection, timeout_s=limits.call_s)

    async def properties(self, container: str, name: str) -> BlobProperties | None:
        """Return a blob's properties, or None if the blob is missing. Its content is not read."""
        try:
            async with self._call("properties") as client:
                return _properties(await _blob(client, container, name).get_blob_properties())
        except NotFoundError:
            return None

    async def read(self, container: str, name: str) -> bytes:
        """Return the blob's content. Raise `NotFoundError` if the blob is missing."""
        _, pieces = await self._download(container, name, _not_found)
        return b"".join([piece async for piece in pieces])

    async def download(self, container: str, name: str, target: Path) -> BlobProperties:
        """Stream a blob into a local file. If the download fails, the incomplete file is removed.

        Raises:
            NotFoundError: the blob is missing.
            ConflictError: the blob was replaced during the download.
        """
        try:
            properties, pieces = await self._download(container, name, _not_found)
            with await asyncio.to_thread(target.open, "wb") as file:
                async for piece in pieces:
                    await asyncio.to_thread(file.write, piece)
        except BaseException:
            await asyncio.to_thread(target.unlink, missing_ok=True)
            raise
        return properties

    async def chunks(
        self, container: str, name: str, *, etag: str, first: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """Yield a blob's content in pieces, starting at byte `first`. Without `length`, read to the end.

        Raises:
            NotFoundError: the blob was deleted.
            ConflictError: the blob was replaced and no longer has this etag.
        """
        await self._connection.opened()
        # The SDK rejects a length without an offset.
        span = {} if length is None and not first else {"offset": first, "length": length}
        _, pieces = await self._download(container, name, _not_found_or_changed, **_match_etag(etag), **span)
        async for piece in pieces:
            yield piece

    async def write(
        self, container: str, name: str, content: bytes, *, metadata: dict[str, str] | None = None
    ) -> None:
        """Create or replace a blob. Its content type is derived from the name's extension, so that browsers
        can display figures.
        """
        await self._upload(container, name, content, metadata=metadata)

    async def create(self, container: str, name: str, content: bytes) -> bool:
        """Create a blob. Return False if it already exists, which may be due to an earlier attempt whose
        response was lost.
        """
        try:
            await self.write_version(container, name, content, etag=None)
        except ConflictError:
            return False
        return True

    async def read_version(
        self, container: str, name: str, *, most_bytes: int | None = None
    ) -> tuple[bytes, str]:
        """Return the blob's content and etag. The content is empty if the blob exceeds `most_bytes`.

        Raises:
            NotFoundError: the blob is missing.
        """
        properties, pieces = await self._download(container, name, _not_found_or_changed)
        if most_bytes is not None and properties.size_bytes > most_bytes:
            return b"", properties.etag
        return b"".join([piece async for piece in pieces]), properties.etag

    async def write_version(self, container: str, name: str, content: bytes, *, etag: str | None) -> str:
        """Replace the blob if it still has this etag, or create it if `etag` is None. Return the new etag.

        Raises:
            ConflictError: the blob has another etag, possibly because an earlier attempt succeeded and its
                response was lost.
        """
        await self._connection.opened()

        if etag is None:
            condition = MatchConditions.IfMissing
            return await self._upload(container, name, content, "create", match_condition=condition)
        return await self._upload(container, name, content, **_match_etag(etag))

    async def write_stream(self, container: str, name: str, parts: AsyncIterator[bytes]) -> BlobProperties:
        """Create or replace a blob from an iterator without holding its whole content in memory.

        The new content becomes visible after the last part. If `parts` raises, the blob stays unchanged.

        Raises:
            ConflictError: the blob was replaced at the same time.
        """
        # The SDK's own block ids depend only on the offset, so simultaneous uploads would exchange blocks.
        # Azure discards uncommitted blocks after a week.
        blob, upload_id = _blob(await self._connection.opened(), container, name), uuid4().hex
        block_ids: list[str] = []
        with call_span(BLOBS, "write"), azure_errors(BLOBS, _not_found_or_lost_blocks):
            async with asyncio.timeout(self._limits.piece_s) as limit:
                async for block in _blocks(PieceClock(limit, self._limits.piece_s).waiting_for(parts)):
                    block_ids.append(f"{upload_id}-{len(block_ids):05d}")
                    await blob.stage_block(block_ids[-1], block)
                new_block: type[BlobBlock] = load("azure.storage.blob", "BlobBlock")
                done = await blob.commit_block_list(
                    [new_block(block_id) for block_id in block_ids], content_settings=_content_settings(name)
                )
        async with self._call("properties", _not_found):
            # Keep the upload's etag: the blob may have been replaced since.
            return _properties(await blob.get_blob_properties()).model_copy(
                update={"etag": str(done["etag"]).strip('"')}
            )

    async def list_blobs(self, container: str, prefix: str = "") -> AsyncIterator[BlobProperties]:
        """Yield the blobs whose names start with `prefix`, in name order. A missing container counts as
        empty.
        """
        client = await self._connection.opened()
        blobs = client.get_container_client(container).list_blobs(
            name_starts_with=prefix or None, include=["metadata"]
        )
        try:
            async for properties in listed(each_within(self._limits.call_s, blobs, BLOBS), BLOBS, "list"):
                yield _properties(properties)
        except NotFoundError:
            return

    async def read_url(self, container: str, name: str, lifetime_s: float) -> SignedUrl:
        """Return a signed URL for reading a blob. Anyone who has the URL can use it until it expires."""
        return await self._signer.sign(container, name, "r", lifetime_s)

    async def upload_url(self, container: str, name: str, lifetime_s: float) -> SignedUrl:
        """Return a signed URL for creating or replacing a blob. Anyone who has the URL can use it until it
        expires.
        """
        return await self._signer.sign(container, name, "cw", lifetime_s)

    async def delete(self, container: str, name: str) -> None:
        """Delete a blob and its snapshots. Missing blobs are ignored."""
        try:
            async with self._call("delete") as client:
                await _blob(client, container, name).delete_blob(delete_snapshots="include")
        except NotFoundError:
            return

    async def delete_version(self, container: str, name: str, *, etag: str) -> bool:
        """Delete a blob if it still has this etag. Return False if it has changed or is missing."""
        try:
            async with self._call("delete", _not_found_or_changed) as client:
                await _blob(client, container, name).delete_blob(
                    delete_snapshots="include", **_match_etag(etag)
                )
        except (NotFoundError, ConflictError):
            return False
        return True

    async def delete_prefix(self, container: str, prefix: str) -> None:
        """Delete every blob whose name starts with `prefix`."""
        client = await self._connection.opened()
        names = client.get_container_client(container).list_blob_names(name_starts_with=prefix)
        listed = each_within(self._limits.call_s, names, BLOBS, _not_found)
        blob_names = [name async for name in listed]
        await run_together(*(self.delete(container, name) for name in blob_names), at_once=DELETES_AT_ONCE)

    async def ensure_containers(self, containers: Sequence[str]) -> None:
        """Create the containers that don't exist yet."""
        for container in containers:
            try:
                async with self._call("create container") as client:
                    await client.create_container(container)
            except ConflictError:  # the container already exists
                continue

    async def _upload(
        self, container: str, name: str, content: bytes, operation: str = "write", **options: Any
    ) -> str:
        """Upload a blob and return its new etag. `options` are passed to the SDK, e.g. metadata and
        conditions.
        """
        client = await self._connection.opened()
        with call_span(BLOBS, operation), azure_errors(BLOBS, _not_found_or_changed):
            async with asyncio.timeout(self._limits.piece_s) as limit:
                done = await _blob(client, container, name).upload_blob(
                    content,
                    overwrite=True,
                    content_settings=_content_settings(name),
                    progress_hook=PieceClock(limit, self._limits.piece_s).on_progress,
                    **options,
                )
        return str(done["etag"]).strip('"')

    def _call(
        self, operation: str, read_status: StatusTranslation | None = None
    ) -> AbstractAsyncContextManager[BlobServiceClient]:
        limit_s = self._limits.call_s
        return calling(self._connection, BLOBS, read_status, timeout_s=limit_s, operation=operation)

    async def _download(
        self, container: str, name: str, read_status: StatusTranslation, **options: Any
    ) -> tuple[BlobProperties, AsyncIterator[bytes]]:
        """Start a download and return the blob's properties and an iterator over its content. `options` are
        passed to the SDK, e.g. the etag and range.
        """
        # This call already fetches the first piece, so it gets the time limit of a piece.
        limit_s = self._limits.piece_s
        opening = calling(self._connection, BLOBS, read_status, timeout_s=limit_s, operation="read")
        async with opening as client:
            # Don't decompress: the uploader sets Content-Encoding, which may be wrong or hide a decompression
            # bomb.
            stream = await _blob(client, container, name).download_blob(decompress=False, **options)
        pieces = each_within(self._limits.piece_s, stream.chunks(), BLOBS, read_status)
        return _properties(stream.properties), pieces


def _blob(client: BlobServiceClient, container: str, name: str) -> BlobClient:
    """Return the SDK client for one blob.

    Raises:
        NotFoundError: the name contains a path segment such as `..`, which the HTTP client would resolve,
            possibly to another container.
    """
    if not {".", ".."}.isdisjoint(name.replace("\\", "/").split("/")):
        raise NotFoundError(_MISSING)
    return client.get_blob_client(container, name)


async def _blocks(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Join and split parts into blocks of `UPLOAD_PIECE_BYTES`. The last one may be shorter."""
    block = bytearray()
    async for part in parts:
        block += part
        while len(block) >= UPLOAD_PIECE_BYTES:
            yield bytes(block[:UPLOAD_PIECE_BYTES])
            del block[:UPLOAD_PIECE_BYTES]
    if block:
        yield bytes(block)


def _match_etag(etag: str) -> dict[str, Any]:
    """Return SDK arguments that make a request fail unless the blob still has this etag."""
    return {"etag": f'"{etag}"', "match_condition": MatchConditions.IfNotModified}


def _content_settings(name: str) -> ContentSettings:
    content_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    content: ContentSettings = load("azure.storage.blob", "ContentSettings")(content_type=content_type)
    return content


def _properties(properties: Any) -> BlobProperties:
    return BlobProperties(
        name=properties.name,
        size_bytes=properties.size,
        etag=properties.etag.strip('"'),  # the quotes are removed, as in Event Grid events
        modified_at=properties.last_modified,
        content_type=properties.content_settings.content_type,
        # Listings return None for metadata with an empty value.
        metadata={key.lower(): value or "" for key, value in (properties.metadata or {}).items()},
    )


# Users see these messages, so they don't contain the blob's path.
_MISSING = "The stored file doesn't exist or has been deleted."


def _not_found(status: int, _message: str) -> GroundworkError | None:
    return NotFoundError(_MISSING) if status == 404 else None


def _not_found_or_changed(status: int, message: str) -> GroundworkError | None:
    if status == 412:
        return ConflictError("The stored file has been replaced in the meantime.", "Read it again.")
    return _not_found(status, message)


def _not_found_or_lost_blocks(status: int, message: str) -> GroundworkError | None:
    # The first upload that commits its blocks discards the blocks of all others (InvalidBlockList).
    if status == 400 and "block list" in message:
        return ConflictError("A file of the same name was uploaded at the same time.", "Upload it again.")
    return _not_found(status, message)


async def read_model(blobs: BlobStore, container: str, name: str, kind: type[Stored]) -> Stored:
    """Return a model parsed from a blob's JSON. Raise `NotFoundError` if the blob is missing."""
    return kind.from_stored(await blobs.read(container, name))


async def find_model(blobs: BlobStore, container: str, name: str, kind: type[Stored]) -> Stored | None:
    """Return a model parsed from a blob's JSON, or None if the blob is missing."""
    try:
        return await read_model(blobs, container, name, kind)
    except NotFoundError:
        return None


async def write_model(blobs: BlobStore, container: str, name: str, value: Model) -> None:
    """Store a model as JSON, creating or replacing the blob."""
    await blobs.write(container, name, value.model_dump_json().encode())


async def keep_model(blobs: BlobStore, container: str, name: str, value: Stored) -> Stored:
    """Store a model as JSON if the blob doesn't exist yet. Return the stored model, which may be an earlier
    one.
    """
    if await blobs.create(container, name, value.model_dump_json().encode()):
        return value
    return await read_model(blobs, container, name, type(value))
