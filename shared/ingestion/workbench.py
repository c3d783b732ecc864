"""What a parser may use beside its file: a folder for pictures, and text recognition. One a document."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shared.ingestion.figure_folder import FigureFolder
from shared.ingestion.parsers.ocr import TextRecognition


@dataclass(frozen=True)
class Workbench:
    """Belongs to one document while it is parsed.

    Attributes:
        figures: where its pictures go.
        recognition: reads its scanned pages, and the words in its pictures.
    """

    figures: FigureFolder
    recognition: TextRecognition


@contextmanager
def open_workbench(folder: Path, max_figures: int, recognition_budget_s: float) -> Iterator[Workbench]:
    """A workbench whose pictures go to `folder`, an empty one."""
    recognition = TextRecognition(recognition_budget_s)
    try:
        yield Workbench(FigureFolder(folder, max_figures), recognition)
    finally:
        recognition.close()


def bare_workbench() -> Workbench:
    """One that keeps no pictures and reads none: for text alone."""
    return Workbench(FigureFolder(Path(), limit=0), TextRecognition(budget_s=0))
