"""What reads documents besides our own parsers: services for layout and for text recognition."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from shared.ingestion.models import Layout, PageTexts
from shared.platform.language_models.models import CallLimits


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


@dataclass(frozen=True)
class ParserServices:
    """What reads documents beside our own parsers; None = our own parsers alone."""

    layout: LayoutReader | None = None
    pages: PageReader | None = None
