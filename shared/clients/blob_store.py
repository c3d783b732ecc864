"""`BlobStore` over the aio client of azure-storage-blob. Memory stays bounded whatever a blob's size."""

import asyncio
import mimetypes
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.clients.blob_sas import BlobSigner
from shared.clients.connection import Connection
from shared.clients.dependency import BLOBS
from shared.clients.parallel import for_each
from shared.clients.translate import azure_errors
from shared.errors import ConflictError, GroundworkError, NotFoundError
from shared.models.blobs import BlobProperties, SignedUrl
from shared.ports import BlobStore

if TYPE_CHECKING:
    from azure.storage.blob import ContentSettings
    from azure.storage.blob.aio import BlobClient, BlobServiceClient

DELETES_AT_ONCE = 16  # unmeasured; a document has some hundreds of figures at most


class AzureBlobStore(BlobStore):
    """The containers of one storage account."""

    def __init__(self, connection: "Connection[BlobServiceClient]") -> None:
        self._connection = connection
        self._signer = BlobSigner(connection)

    async def properties(self, container: str, name: str) -> BlobProperties | None:
        """What is known of a blob; None when there is none."""
        from azure.core.exceptions import ResourceNotFoundError

        with azure_errors(BLOBS):
            try:
                return _properties(await self._blob(container, name).get_blob_properties())
            except ResourceNotFoundError:
                return None

    async def read(self, container: str, name: str) -> bytes:
        """Whole content."""
        with azure_errors(BLOBS, _gone(container, name)):
            stream = await self._blob(container, name).download_blob()
            content: bytes = await stream.readall()
            return content

    async def download(self, container: str, name: str, target: Path) -> BlobProperties:
        """Stream the content into a file, piece by piece. All of it is of one version of the blob.

        Raises:
            NotFoundError: it is gone.
            ConflictError: it was replaced while it was read. No file is left behind then.
        """
        try:
            with azure_errors(BLOBS, _gone(container, name)):
                stream = await self._blob(container, name).download_blob()
                with await asyncio.to_thread(target.open, "wb") as file:
                    async for piece in stream.chunks():
                        await asyncio.to_thread(file.write, piece)
                return _properties(stream.properties)
        except BaseException:
            await asyncio.to_thread(target.unlink, missing_ok=True)
            raise

    async def chunks(
        self, container: str, name: str, *, etag: str, first: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """The content of one version, piece by piece; `length` None = to the end.

        Raises:
            NotFoundError, ConflictError: this version is gone. Which of the two is the service's choice.
        """
        from azure.core import MatchConditions

        with azure_errors(BLOBS, _gone_or_changed(container, name)):
            stream = await self._blob(container, name).download_blob(
                first or None, length, etag=f'"{etag}"', match_condition=MatchConditions.IfNotModified
            )
            async for piece in stream.chunks():
                yield piece

    async def write(
        self, container: str, name: str, content: bytes, *, metadata: dict[str, str] | None = None
    ) -> None:
        """Create or replace. The content type follows the name's suffix, so that browsers show figures."""
        with azure_errors(BLOBS, _gone(container, name)):
            await self._blob(container, name).upload_blob(
                content, overwrite=True, metadata=metadata, content_settings=_content_settings(name)
            )

    async def write_stream(self, container: str, name: str, parts: AsyncIterator[bytes]) -> BlobProperties:
        """Create or replace from pieces as they come.

        Blocks are staged, and committed together at the end: what is staged and never committed is no blob,
        and the service drops it after a week.
        """
        blob = self._blob(container, name)
        with azure_errors(BLOBS, _gone(container, name)):
            done = await blob.upload_blob(parts, overwrite=True, content_settings=_content_settings(name))
            # Asked for this very version: another one may have come meanwhile.
            return _properties(await blob.get_blob_properties()).model_copy(
                update={"etag": str(done["etag"]).strip('"')}
            )

    async def list_blobs(self, container: str, prefix: str = "") -> AsyncIterator[BlobProperties]:
        """Every blob whose name begins so, with its metadata."""
        from azure.core.exceptions import ResourceNotFoundError

        blobs = self._connection.client().get_container_client(container).list_blobs
        with azure_errors(BLOBS):
            try:
                async for found in blobs(name_starts_with=prefix or None, include=["metadata"]):
                    yield _properties(found)
            except ResourceNotFoundError:
                return

    async def read_url(self, container: str, name: str, lifetime_s: float) -> SignedUrl:
        """An address by which anybody may read the blob, until it expires."""
        from azure.storage.blob import BlobSasPermissions

        return await self._signer.sign(container, name, BlobSasPermissions(read=True), lifetime_s)

    async def upload_url(self, container: str, name: str, lifetime_s: float) -> SignedUrl:
        """An address by which anybody may create or replace the blob, until it expires."""
        from azure.storage.blob import BlobSasPermissions

        permission = BlobSasPermissions(create=True, write=True)
        return await self._signer.sign(container, name, permission, lifetime_s)

    async def delete(self, container: str, name: str) -> None:
        """Remove, with its snapshots."""
        from azure.core.exceptions import ResourceNotFoundError

        with azure_errors(BLOBS):
            try:
                await self._blob(container, name).delete_blob(delete_snapshots="include")
            except ResourceNotFoundError:
                return

    async def delete_prefix(self, container: str, prefix: str) -> None:
        """Remove every blob whose name begins so."""
        with azure_errors(BLOBS, _gone(container, prefix)):
            names = self._connection.client().get_container_client(container).list_blob_names
            found = [name async for name in names(name_starts_with=prefix)]
        await for_each(found, lambda name: self.delete(container, name), at_once=DELETES_AT_ONCE)

    async def ensure_containers(self, containers: Sequence[str]) -> None:
        """Create those that are missing."""
        from azure.core.exceptions import ResourceExistsError

        for container in containers:
            with azure_errors(BLOBS):
                try:
                    await self._connection.client().create_container(container)
                except ResourceExistsError:
                    continue

    def _blob(self, container: str, name: str) -> "BlobClient":
        return self._connection.client().get_blob_client(container, name)


def _content_settings(name: str) -> "ContentSettings":
    from azure.storage.blob import ContentSettings

    return ContentSettings(content_type=mimetypes.guess_type(name)[0] or "application/octet-stream")


def _properties(found: Any) -> BlobProperties:
    return BlobProperties(
        name=found.name,
        size_bytes=found.size,
        etag=found.etag.strip('"'),  # as in events: those carry it without quotes
        content_type=found.content_settings.content_type,
        metadata={key.lower(): value for key, value in (found.metadata or {}).items()},
    )


def _gone(container: str, name: str) -> Any:
    def read_status(status: int, message: str) -> GroundworkError | None:
        return NotFoundError(f"There is no {container}/{name}.") if status == 404 else None

    return read_status


def _gone_or_changed(container: str, name: str) -> Any:
    def read_status(status: int, message: str) -> GroundworkError | None:
        if status == 412:
            return ConflictError(f"{container}/{name} was replaced meanwhile.", "Read it again.")
        return NotFoundError(f"There is no {container}/{name}.") if status == 404 else None

    return read_status
