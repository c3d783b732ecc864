"""Models of hits and document rows, and the metadata that a model extracts from a document."""

import re
from bisect import bisect
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field

from shared.platform.models import Model
from shared.retrieval.metadata_text import MetadataName, MetadataSummary, MetadataTags

BlockType = Literal["text", "image", "card"]
"""A card describes a table that can be queried: a search finds the table through it, but never quotes it."""
HEADING_SEPARATOR = " > "


class Hit(Model):
    """A block found by a search.

    Attributes:
        score: fused score on 0-1 (shared/retrieval/fusion.py), comparable between queries.
        version: newest document version that contains the block.
        ordinal: position in the document in reading order.
        cues: times of the words in `content`, for transcripts (shared/evidence/cues.py).
        content: of text blocks; image blocks have image_url (a blob path) and image_caption instead.
    """

    block_id: str
    doc_id: str
    filename: str
    block_type: BlockType = "text"
    page_number: int | None = None
    ordinal: int = 0
    start_seconds: float | None = None
    cues: str | None = None
    heading_path: str = ""
    content: str = ""
    image_url: str | None = None
    image_caption: str | None = None
    score: float = 0.0
    version: int = 0

    def is_heading(self, title: str = "") -> bool:
        """Return whether a text block contains only words of its headings, title and file name. Such blocks
        guide a reader but prove nothing.
        """
        words = _words(self.content)
        if self.block_type != "text" or len(words) > _HEADING_WORDS:
            return False
        return words <= _words(f"{self.heading_path} {title} {self.filename}")


@dataclass(frozen=True)
class ReadableDocuments:
    """The documents and databases that one user may currently read.

    Attributes:
        versions: current versions of the documents, by id.
        databases: ids of the databases.
    """

    versions: Mapping[str, int]
    databases: Collection[str] = ()

    def __contains__(self, doc_id: str) -> bool:
        return doc_id in self.versions or doc_id in self.databases

    def admits(self, hit: Hit) -> bool:
        """Return whether the user may read the hit's document and the document still contains the block."""
        return hit.doc_id in self.versions and hit.version >= self.versions[hit.doc_id]


_HEADING_WORDS = 20  # maximum number of words in a heading; longer blocks are text or tables of contents


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.casefold()))


DocumentStatus = Literal["queued", "parsing", "captioning", "embedding", "indexing", "ready", "failed"]


class DocumentMetadata(Model):
    """Structured output of metadata extraction from a document's beginning; every field is required."""

    title: MetadataName = Field(description="The document's own title, as printed in it.")
    author: MetadataName | None = Field(description="Person or organisation named as author, or null.")
    document_type: MetadataName = Field(
        description="One lower-case noun, such as manual, report, policy, price_list"
    )
    department: MetadataName | None = Field(description="Department that the document belongs to, or null.")
    date: str | None = Field(description="Date in the document, ISO 8601: YYYY, YYYY-MM or YYYY-MM-DD.")
    language: str = Field(description="ISO 639-1 code of the main language.")
    tags: MetadataTags = Field(description="3 to 8 topics, lower case.")
    summary_brief: MetadataSummary = Field(description="2-3 sentences.")
    summary_standard: MetadataSummary = Field(description="1-2 paragraphs.")


HOURS_OF_PRECISION = (0, 6, 12)
"""Hours of stored dates of which only the year, the year and month, or the whole date is printed."""


class DocumentRecord(Model):
    """A row of the `documents-metadata` index (docs/internals/stores.md).

    Attributes:
        file_type: lower-case suffix without its dot, such as `xlsx`.
        document_date: date printed in the document, in UTC. The hour is its precision; see `printed_date`.
        published_by: the owner's display name at upload.
        thread_id: the only thread in which the document may be read; None = no such limit.
    """

    doc_id: str
    project_id: str | None = None
    filename: str
    file_type: str | None = None
    title: MetadataName = ""
    document_type: MetadataName | None = None
    upload_date: datetime
    document_date: datetime | None = None
    author: MetadataName | None = None
    department: MetadataName | None = None
    language: str | None = None
    tags: MetadataTags = ()
    page_count: int | None = None
    summary_brief: MetadataSummary = ""
    summary_standard: MetadataSummary = ""
    source_url: str | None = None
    content_hash: str = ""
    version: int = 1
    status: DocumentStatus = "queued"
    status_reason: str | None = None
    edited_fields: tuple[str, ...] = ()
    owner_id: str | None = None
    published_by: str | None = None
    access_control_list: tuple[str, ...] = ()
    thread_id: str | None = None

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """Create a record from a complete or partial index row. Unknown fields are ignored, and null counts
        as missing.
        """
        return cls.model_validate({name: row[name] for name in cls.model_fields if row.get(name) is not None})

    @property
    def printed_date(self) -> str | None:
        """The date as printed in the document, in ISO 8601: a year, month or day. None if there is none."""
        if self.document_date is None:
            return None
        parts = self.document_date.date().isoformat().split("-")
        return "-".join(parts[: bisect(HOURS_OF_PRECISION, self.document_date.hour)])
