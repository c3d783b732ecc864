"""docling's document as a layout. Pure.

The document is a tree of references; its order is the reading order.

Source: docling-core, DoclingDocument 1.x.
"""

from collections.abc import Iterator, Mapping

from pydantic import Field

from shared.clients.documents_wire import Cell, Wire, filled_rows, folded
from shared.models.layout import Layout, LayoutPiece, PageArea, PieceKind

_FURNITURE = ("page_header", "page_footer")
_MARKS = {"checkbox_selected": "☒ ", "checkbox_unselected": "☐ "}
_BULLETS = ("", "-", "*", "•", "·", "◦", "▪", "‣", "–", "—")


class Reference(Wire):
    """ "#/texts/3"."""

    ref: str = Field(alias="$ref")


class BoundingBox(Wire):
    """In the page's unit; where y begins is said by `coord_origin`."""

    left: float = Field(alias="l")
    top: float = Field(alias="t")
    right: float = Field(alias="r")
    bottom: float = Field(alias="b")
    coord_origin: str = "TOPLEFT"


class Provenance(Wire):
    """Where an item stands."""

    page_no: int
    bbox: BoundingBox | None = None


class TableCell(Wire):
    """A cell; places count from 0, the ends are excluded."""

    start_row_offset_idx: int
    end_row_offset_idx: int
    start_col_offset_idx: int
    end_col_offset_idx: int
    text: str = ""


class TableData(Wire):
    """What is in a table."""

    num_rows: int = 0
    num_cols: int = 0
    table_cells: tuple[TableCell, ...] = ()


class Item(Wire):
    """A text, table, picture or group: what is not its own stays at the default."""

    label: str = ""
    content_layer: str = "body"
    children: tuple[Reference, ...] = ()
    captions: tuple[Reference, ...] = ()
    prov: tuple[Provenance, ...] = ()
    text: str = ""
    level: int = 1
    marker: str = ""
    data: TableData | None = None

    @property
    def page_number(self) -> int | None:
        return self.prov[0].page_no if self.prov else None


class PageSize(Wire):
    """In the page's unit."""

    width: float = 0
    height: float = 0


class DocumentPage(Wire):
    """A page that was read."""

    size: PageSize = PageSize()


class DoclingDocument(Wire):
    """The document."""

    body: Item
    texts: tuple[Item, ...] = ()
    tables: tuple[Item, ...] = ()
    pictures: tuple[Item, ...] = ()
    groups: tuple[Item, ...] = ()
    pages: dict[str, DocumentPage] = Field(default_factory=dict)


def layout_of(document: DoclingDocument, service: str) -> Layout:
    """The pieces in reading order, without running headers and footers.

    Raises:
        ValueError: a table of impossible size.
    """
    return Layout(pieces=tuple(_Walk(document).pieces()), page_count=len(document.pages), service=service)


class _Walk:
    """One way through the tree; each item is met once, whatever the references say."""

    def __init__(self, document: DoclingDocument) -> None:
        self._document = document
        self._parts: Mapping[str, tuple[Item, ...]] = {
            "texts": document.texts,
            "tables": document.tables,
            "pictures": document.pictures,
            "groups": document.groups,
        }
        self._seen: set[str] = set()

    def pieces(self) -> Iterator[LayoutPiece]:
        # A stack and no recursion: how deep the tree is, is up to the answer.
        open_references = list(reversed(self._document.body.children))
        while open_references:
            reference = open_references.pop().ref
            item = self._item(reference)
            if item is None:
                continue
            open_references += reversed(item.children)
            if reference.startswith("#/pictures/"):
                # Its caption and the words in it are children: they follow as texts.
                yield self._figure(item)
            elif reference.startswith("#/tables/"):
                for child in item.children:
                    self._skip_unless_caption(child.ref, item)
                yield _table(item)
            elif reference.startswith("#/texts/"):
                yield from _text(item)

    def _item(self, reference: str) -> Item | None:
        if reference in self._seen:
            return None
        self._seen.add(reference)
        found = self._found(reference)
        return None if found is None or found.content_layer == "furniture" else found

    def _found(self, reference: str) -> Item | None:
        part, _, position = reference.removeprefix("#/").partition("/")
        items = self._parts.get(part, ())
        return items[int(position)] if position.isdecimal() and int(position) < len(items) else None

    def _skip_unless_caption(self, reference: str, table: Item) -> None:
        """The texts below a table are those of its cells, which it holds itself."""
        if reference not in {caption.ref for caption in table.captions}:
            self._seen.add(reference)

    def _texts_of(self, references: tuple[Reference, ...]) -> Iterator[str]:
        for reference in references:
            found = self._found(reference.ref)
            if found is not None and found.text:
                yield folded(found.text)

    def _figure(self, picture: Item) -> LayoutPiece:
        captions = {caption.ref for caption in picture.captions}
        inside = tuple(child for child in picture.children if child.ref not in captions)
        return LayoutPiece(
            kind="figure",
            text=" ".join(self._texts_of(picture.captions)),
            words="\n".join(self._texts_of(inside)),
            page_number=picture.page_number,
            area=self._area(picture),
        )

    def _area(self, picture: Item) -> PageArea | None:
        place = picture.prov[0] if picture.prov else None
        page = self._document.pages.get(str(place.page_no)) if place else None
        if place is None or place.bbox is None or page is None:
            return None
        box, size = place.bbox, page.size
        if size.width <= 0 or size.height <= 0:
            return None
        upwards = box.coord_origin == "BOTTOMLEFT"
        top, bottom = (size.height - box.top, size.height - box.bottom) if upwards else (box.top, box.bottom)
        return PageArea(
            left=box.left / size.width,
            top=top / size.height,
            right=box.right / size.width,
            bottom=bottom / size.height,
        )


def _table(table: Item) -> LayoutPiece:
    data = table.data or TableData()
    cells = (
        Cell(
            row=cell.start_row_offset_idx,
            row_end=cell.end_row_offset_idx,
            column=cell.start_col_offset_idx,
            column_end=cell.end_col_offset_idx,
            text=folded(cell.text),
        )
        for cell in data.table_cells
    )
    rows = filled_rows(data.num_rows, data.num_cols, cells)
    return LayoutPiece(kind="table", rows=rows, page_number=table.page_number)


def _text(item: Item) -> Iterator[LayoutPiece]:
    if item.label in _FURNITURE or not item.text.strip():
        return
    kind: PieceKind = "paragraph"
    text, level = folded(item.text), None
    if item.label == "title":
        kind, level = "heading", 1
    elif item.label == "section_header":
        kind, level = "heading", min(item.level + 1, 6)  # as in docling's own Markdown: the title is above
    elif item.label == "list_item":
        kind, text = "list_item", f"{'-' if item.marker.strip() in _BULLETS else item.marker.strip()} {text}"
    elif item.label == "code":
        kind, text = "code", item.text.strip("\n")
    yield LayoutPiece(
        kind=kind, text=_MARKS.get(item.label, "") + text, page_number=item.page_number, level=level
    )
