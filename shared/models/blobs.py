"""Blobs as the application sees them."""

from pydantic import Field

from shared.models.base import Model


class BlobProperties(Model):
    """What is known of a blob without reading it. Metadata keys are lower case."""

    name: str
    size_bytes: int
    etag: str
    content_type: str | None = None
    metadata: dict[str, str] = Field(default_factory=dict)
