"""blobs."""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from pydantic import Field

from shared.platform.models import Model


class BlobProperties(Model):
    """What is known of a blob without reading it. Metadata keys are lower case."""

    name: str
    size_bytes: int
    etag: str
    content_type: str | None = None
    metadata: dict[str, str] = Field(default_factory=dict)


class ByteSpan(Model):
    """Some of a file's bytes: `length` of them (1 or more), from `first` on, counted from 0."""

    first: int
    length: int


class SignedUrl(Model):
    """An address that needs no identity. Whoever has it may use it: never logged, never stored."""

    url: str = Field(repr=False)
    expires_at: datetime


class BlobStore(Protocol):
    """The blob containers of the application."""

    async def properties(self, container: str, name: str) -> BlobProperties | None: ...

    async def read(self, container: str, name: str) -> bytes:
        """Whole content. NotFoundError when it is gone."""

    async def download(self, container: str, name: str, target: Path) -> BlobProperties:
        """Stream the content into a file; memory stays bounded. NotFoundError when it is gone."""

    def chunks(
        self, container: str, name: str, *, etag: str, first: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """One version, piece by piece, from byte `first` on. NotFoundError, ConflictError: it is no more."""

    async def write(
        self, container: str, name: str, content: bytes, *, metadata: dict[str, str] | None = None
    ) -> None:
        """Create or replace."""

    async def create(self, container: str, name: str, content: bytes) -> bool:
        """Create; False, and nothing changed, when there is such a blob already: the first writer wins."""

    async def read_version(self, container: str, name: str) -> tuple[bytes, str]:
        """Whole content, with the etag of that very version. NotFoundError when it is gone."""

    async def write_version(self, container: str, name: str, content: bytes, *, etag: str | None) -> str:
        """Replace the version of this etag, or with None create what is not there yet; gives the new etag.

        Raises:
            ConflictError: it is another version by now, be it our own of a try whose answer was lost.
        """

    async def write_stream(self, container: str, name: str, parts: AsyncIterator[bytes]) -> BlobProperties:
        """Create or replace from pieces as they come; memory stays bounded.

        The blob appears, or changes, when all of them are there; if `parts` raises, nothing has happened.
        """

    def list_blobs(self, container: str, prefix: str = "") -> AsyncIterator[BlobProperties]:
        """Every blob whose name begins so, in the order of names; none when there is no container."""

    async def read_url(self, container: str, name: str, lifetime_s: float) -> SignedUrl:
        """An address by which anybody may read this one blob, until it expires."""

    async def upload_url(self, container: str, name: str, lifetime_s: float) -> SignedUrl:
        """An address by which anybody may create or replace this one blob, until it expires."""

    async def delete(self, container: str, name: str) -> None:
        """Remove; an absent blob is no error."""

    async def delete_prefix(self, container: str, prefix: str) -> None: ...

    async def ensure_containers(self, containers: Sequence[str]) -> None: ...
