"""Episodic memory: a person's own past questions, each with what was answered."""

from datetime import datetime

from pydantic import Field

from shared.models.base import Model


class Memory(Model):
    """One remembered turn. `memory_id` is the run's id; `score` (0-1) is there when it was searched for.

    Attributes:
        answer_summary: empty as well when a document that the answer cites is not open to its owner any more.
        doc_ids: the documents that the answer cites; for that check, and shown to nobody.
    """

    memory_id: str
    thread_id: str
    question: str
    answer_summary: str
    created_at: datetime
    score: float | None = None
    doc_ids: tuple[str, ...] = Field(default=(), exclude=True)


class MemoryList(Model):
    """Answer of GET /api/memory, newest first; `cursor` leads to older ones."""

    memories: tuple[Memory, ...]
    count: int
    cursor: str | None = None


class MemoriesDeleted(Model):
    """Answer of DELETE /api/memory."""

    deleted: int
