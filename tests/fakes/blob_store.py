"""A blob store in memory."""

import hashlib
import mimetypes
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from shared.platform.blobs import BlobProperties, BlobStore, SignedUrl
from shared.platform.errors import ConflictError, NotFoundError

PIECE_BYTES = 4 * 1024 * 1024


@dataclass
class _Blob:
    content: bytes
    metadata: dict[str, str] = field(default_factory=dict)
    write_number: int = 0
    modified_at: datetime = field(default_factory=lambda: datetime.now(UTC))


class InMemoryBlobStore(BlobStore):
    """A blob store in memory. A container is created with its first blob, so that tests need no set-up."""

    def __init__(self) -> None:
        self.containers: dict[str, dict[str, _Blob]] = {}
        self._writes = 0

    async def properties(self, container: str, name: str) -> BlobProperties | None:
        blob = self.containers.get(container, {}).get(name)
        return None if blob is None else _properties(name, blob)

    async def read(self, container: str, name: str) -> bytes:
        return self._find(container, name).content

    async def download(self, container: str, name: str, target: Path) -> BlobProperties:
        blob = self._find(container, name)
        target.write_bytes(blob.content)
        return _properties(name, blob)

    async def chunks(
        self, container: str, name: str, *, etag: str, first: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        blob = self._find(container, name)
        if _properties(name, blob).etag != etag:
            raise ConflictError(f"{container}/{name} was replaced in the meantime.")
        selection = blob.content[first : None if length is None else first + length]
        for start in range(0, len(selection), PIECE_BYTES):
            yield selection[start : start + PIECE_BYTES]

    async def write(
        self, container: str, name: str, content: bytes, *, metadata: dict[str, str] | None = None
    ) -> None:
        self._writes += 1
        blob = _Blob(content, dict(metadata or {}), self._writes)
        self.containers.setdefault(container, {})[name] = blob

    async def create(self, container: str, name: str, content: bytes) -> bool:
        if name in self.containers.get(container, {}):
            return False
        await self.write(container, name, content)
        return True

    async def read_version(
        self, container: str, name: str, *, most_bytes: int | None = None
    ) -> tuple[bytes, str]:
        blob = self._find(container, name)
        is_readable = most_bytes is None or len(blob.content) <= most_bytes
        return blob.content if is_readable else b"", _properties(name, blob).etag

    async def write_version(self, container: str, name: str, content: bytes, *, etag: str | None) -> str:
        properties = await self.properties(container, name)
        if (properties.etag if properties else None) != etag:
            raise ConflictError(f"{container}/{name} is another version by now.")
        await self.write(container, name, content)
        return _properties(name, self._find(container, name)).etag

    async def write_stream(self, container: str, name: str, parts: AsyncIterator[bytes]) -> BlobProperties:
        content = b"".join([part async for part in parts])
        await self.write(container, name, content)
        return _properties(name, self._find(container, name))

    async def list_blobs(self, container: str, prefix: str = "") -> AsyncIterator[BlobProperties]:
        for name, blob in sorted(self.containers.get(container, {}).items()):
            if name.startswith(prefix):
                yield _properties(name, blob)

    async def read_url(self, container: str, name: str, lifetime_s: float) -> SignedUrl:
        return _signed(f"memory://{container}/{quote(name)}?sp=r", lifetime_s)

    async def upload_url(self, container: str, name: str, lifetime_s: float) -> SignedUrl:
        return _signed(f"memory://{container}/{quote(name)}?sp=cw", lifetime_s)

    async def delete(self, container: str, name: str) -> None:
        self.containers.get(container, {}).pop(name, None)

    async def delete_version(self, container: str, name: str, *, etag: str) -> bool:
        properties = await self.properties(container, name)
        if properties is None or properties.etag != etag:
            return False
        await self.delete(container, name)
        return True

    async def delete_prefix(self, container: str, prefix: str) -> None:
        blobs = self.containers.get(container, {})
        for name in [name for name in blobs if name.startswith(prefix)]:
            del blobs[name]

    async def ensure_containers(self, containers: Sequence[str]) -> None:
        for container in containers:
            self.containers.setdefault(container, {})

    def _find(self, container: str, name: str) -> _Blob:
        try:
            return self.containers[container][name]
        except KeyError:
            raise NotFoundError("The stored file doesn't exist or has been deleted.") from None


def _properties(name: str, blob: _Blob) -> BlobProperties:
    digest = hashlib.sha256(blob.content + str(blob.write_number).encode()).hexdigest()
    return BlobProperties(
        name=name,
        size_bytes=len(blob.content),
        etag=f"0x{digest[:16].upper()}",
        modified_at=blob.modified_at,
        content_type=mimetypes.guess_type(name)[0] or "application/octet-stream",
        metadata={key.lower(): value for key, value in blob.metadata.items()},
    )


def _signed(url: str, lifetime_s: float) -> SignedUrl:
    return SignedUrl(url=url, expires_at=datetime.now(UTC) + timedelta(seconds=lifetime_s))
