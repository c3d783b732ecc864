"""Blobs as the application sees them."""

from datetime import datetime

from pydantic import Field

from shared.models.base import Model


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
