"""What a parser may use beside its file: a folder for pictures, and text recognition. One a document."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from shared.ingestion.figures import FigureFolder
from shared.ingestion.parsers.ocr import TextRecognition


@dataclass
class PagesElsewhere:
    """The words of pages without text, which a service reads between two rounds of parsing.

    Attributes:
        texts: what it read, by page number; in the first round nothing.
        unread: the pages that were asked for and are not there.
    """

    texts: Mapping[int, str]
    unread: list[int] = field(default_factory=list)

    def text_of(self, page_number: int) -> str | None:
        """The page's words; None when it was not read, which is noted."""
        text = self.texts.get(page_number)
        if text is None:
            self.unread.append(page_number)
        return text


@dataclass(frozen=True)
class Workbench:
    """Belongs to one document while it is parsed.

    Attributes:
        figures: where its pictures go.
        recognition: reads its scanned pages, and the words in its pictures.
        elsewhere: where its scanned pages come from instead, if a service reads them.
    """

    figures: FigureFolder
    recognition: TextRecognition
    elsewhere: PagesElsewhere | None = None

    @property
    def reads_pages(self) -> bool:
        """Whether a page without text may get some."""
        return self.elsewhere is not None or self.recognition.is_available

    @property
    def unread_pages(self) -> tuple[int, ...]:
        """Pages that a service has yet to read."""
        return tuple(self.elsewhere.unread) if self.elsewhere is not None else ()


@contextmanager
def open_workbench(
    folder: Path,
    max_figures: int,
    recognition_budget_s: float,
    elsewhere: PagesElsewhere | None = None,
) -> Iterator[Workbench]:
    """A workbench whose pictures go to `folder`, an empty one."""
    recognition = TextRecognition(recognition_budget_s)
    try:
        yield Workbench(FigureFolder(folder, max_figures), recognition, elsewhere)
    finally:
        recognition.close()


def bare_workbench() -> Workbench:
    """One that keeps no pictures and reads none: for text alone."""
    return Workbench(FigureFolder(Path(), limit=0), TextRecognition(budget_s=0))
