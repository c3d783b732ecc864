"""Which files are so small that their whole ingestion is one step: see `small.py`."""

from pathlib import PurePosixPath

from shared.models.blobs import BlobProperties

MAX_BYTES = 32 * 1024  # some 9,000 tokens: one request for their vectors, and seconds until all is done
_SUFFIXES = frozenset({".txt", ".md", ".markdown", ".csv", ".tsv", ".html", ".htm", ".eml", ".vtt", ".srt"})


def is_small(properties: BlobProperties) -> bool:
    """Whether a blob goes the short way."""
    return is_short_text(properties.name, properties.size_bytes)


def is_short_text(filename: str, size_bytes: int) -> bool:
    """Whether it takes no longer to read than to ask."""
    return size_bytes <= MAX_BYTES and PurePosixPath(filename).suffix.lower() in _SUFFIXES
