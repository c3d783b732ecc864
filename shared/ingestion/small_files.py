"""Which files are so small that their whole ingestion is one step: see `small.py`."""

from pathlib import PurePosixPath

from shared.models.blobs import BlobProperties

MAX_BYTES = 32 * 1024  # some 9,000 tokens: one request for their vectors, and seconds until all is done
_SUFFIXES = frozenset({".txt", ".md", ".markdown", ".csv", ".tsv", ".html", ".htm", ".eml", ".vtt", ".srt"})


def is_small(properties: BlobProperties) -> bool:
    """Whether a blob goes the short way."""
    suffix = PurePosixPath(properties.name).suffix.lower()
    return properties.size_bytes <= MAX_BYTES and suffix in _SUFFIXES
