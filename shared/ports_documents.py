"""Ports that read documents and keep their states. Part of `shared.ports`, from where they are imported."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

# For annotations alone: the start of the app need not build every model.
if TYPE_CHECKING:
    from shared.models.ingestion import DocumentState
    from shared.models.layout import Layout, PageTexts
    from shared.models.prompts import CallLimits


class LayoutReader(Protocol):
    """A service that reads the layout of PDFs and pictures."""

    @property
    def name(self) -> str:
        """What messages call it, with the article."""

    def reads(self, suffix: str) -> bool:
        """Whether it takes files of this kind; `suffix` in lower case, with its dot."""

    async def read_layout(self, source: Path, filename: str, limits: CallLimits) -> Layout:
        """The whole file. BadDocumentError when the service cannot read it, or its answer is too large."""


class PageReader(Protocol):
    """A service that reads the words of pages that hold none as text."""

    @property
    def name(self) -> str:
        """What messages call it, with the article."""

    def reads(self, suffix: str) -> bool:
        """Whether it takes files of this kind; `suffix` in lower case, with its dot."""

    async def read_pages(self, source: Path, pages: Sequence[int], limits: CallLimits) -> PageTexts:
        """The words of these pages, counted from 1. BadDocumentError when the file cannot be read."""


class DocumentStore(Protocol):
    """The ingestion state of each document; the indexes know a document only once it can be searched."""

    async def get(self, doc_id: str) -> DocumentState | None: ...

    async def create(self, state: DocumentState) -> DocumentState:
        """The state as stored, with its revision. ConflictError when the document has one."""

    async def replace(self, state: DocumentState) -> DocumentState:
        """The state as stored. ConflictError when it changed, or went, since `state.revision` was read."""

    async def delete(self, state: DocumentState) -> None:
        """Remove it; one that is gone is no error. ConflictError when it changed since it was read."""

    def all(self, low: str = "", high: str | None = None) -> AsyncIterator[DocumentState]:
        """States of documents with ids from `low` to before `high` (None = to the last), in no order."""

    def unfinished(self) -> AsyncIterator[DocumentState]:
        """States of documents that are in work or failed: those that the index does not tell of."""

    def changed_since(self, moment: datetime) -> AsyncIterator[DocumentState]:
        """States that were written at `moment` or later, by their own clock (`updated_at`)."""

    async def ensure_table(self) -> None: ...
