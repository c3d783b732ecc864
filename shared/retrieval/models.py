"""Hits, the rows of documents, and the structured outputs of extraction, reranking and rewriting."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from shared.platform.models import Model

BlockType = Literal["text", "image"]


class Hit(Model):
    """A block found for a question.

    Attributes:
        score: fused score on 0-1 (shared/retrieval/fusion.py), comparable between queries.
        content: for text blocks; image blocks have image_url (a blob path) and image_caption instead.
    """

    block_id: str
    doc_id: str
    filename: str
    block_type: BlockType = "text"
    page_number: int | None = None
    start_seconds: float | None = None
    heading_path: str = ""
    content: str = ""
    image_url: str | None = None
    image_caption: str | None = None
    score: float = 0.0


DocumentStatus = Literal["queued", "parsing", "captioning", "embedding", "indexing", "ready", "failed"]


class DocumentMetadata(Model):
    """What the model extracts from a document's beginning (structured output; every field is required)."""

    title: str = Field(description="The document's own title, as printed in it.")
    author: str | None = Field(description="Person or organisation named as author, else null.")
    document_type: str = Field(description="One lower-case noun, such as manual, report, policy, price_list")
    department: str | None = Field(description="Department that the document belongs to, else null.")
    date: str | None = Field(description="Printed date, ISO 8601: YYYY, YYYY-MM or YYYY-MM-DD.")
    language: str = Field(description="ISO 639-1 code of the main language.")
    tags: tuple[str, ...] = Field(description="3 to 8 topics, lower case.")
    summary_brief: str = Field(description="2-3 sentences.")
    summary_standard: str = Field(description="1-2 paragraphs.")


class DocumentRecord(Model):
    """One row of the `documents-metadata` index (contracts.md, section 1)."""

    doc_id: str
    project_id: str | None = None
    filename: str
    title: str = ""
    document_type: str | None = None
    upload_date: datetime
    document_date: datetime | None = None
    author: str | None = None
    department: str | None = None
    language: str | None = None
    tags: tuple[str, ...] = ()
    page_count: int | None = None
    summary_brief: str = ""
    summary_standard: str = ""
    source_url: str | None = None
    content_hash: str = ""
    version: int = 1
    status: DocumentStatus = "queued"
    status_reason: str | None = None
    edited_fields: tuple[str, ...] = ()
    owner_id: str | None = None
    access_control_list: tuple[str, ...] = ()


class PassageScore(Model):
    """How well one passage answers."""

    number: int = Field(description="The passage's number, as given.")
    score: int = Field(description="0 (nothing to do with it) to 10 (answers it in full).")


class PassageScores(Model):
    """Structured output of reranking."""

    scores: tuple[PassageScore, ...] = Field(description="One for each passage.")


class PassageGrade(Model):
    """Whether one passage helps at all."""

    number: int = Field(description="The passage's number, as given.")
    relevant: bool = Field(description="Whether it holds anything that helps to answer.")


class PassageGrades(Model):
    """Structured output of grading."""

    grades: tuple[PassageGrade, ...] = Field(description="One for each passage.")


class QueryRewrite(Model):
    """Structured output of rewriting a question."""

    standalone_question: str = Field(description="The question with pronouns and ellipsis resolved.")
    search_queries: tuple[str, ...] = Field(description="2-4 different phrasings to search for.")
