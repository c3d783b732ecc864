"""What a parser service sees in a document: its pieces in reading order, whatever service it was."""

from typing import Literal

from shared.models.base import Model

PieceKind = Literal["heading", "paragraph", "list_item", "table", "code", "figure"]


class PageArea(Model):
    """A rectangle on a page, as fractions of its width and height; the origin is the upper left corner."""

    left: float
    top: float
    right: float
    bottom: float


class LayoutPiece(Model):
    """One piece.

    Attributes:
        text: of a figure, its caption; empty for tables.
        level: 1-6 for headings, else None.
        rows: of a table, the header first; a cell that spans others stands in every place that it covers.
        words: the words in a figure; they are pieces of their own, too.
        area: of a figure, where it is on its page; None = not known.
    """

    kind: PieceKind
    text: str = ""
    page_number: int | None = None
    level: int | None = None
    rows: tuple[tuple[str, ...], ...] = ()
    words: str = ""
    area: PageArea | None = None


class Layout(Model):
    """A document as a parser service returns it.

    Attributes:
        page_count: pages that the service read.
        service: its name in messages, with the article.
    """

    pieces: tuple[LayoutPiece, ...]
    page_count: int
    service: str


class PageTexts(Model):
    """The words of pages by their number, paragraphs parted by blank lines; absent = not read."""

    texts: dict[int, str]
