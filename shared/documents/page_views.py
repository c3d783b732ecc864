"""Views of a document: which pieces are shown, where the cited passage is marked. Pure."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shared.documents.models import Caption, Element
from shared.documents.page_models import (
    CitedPassage,
    DocumentText,
    PageSheet,
    PageView,
    ReadableQuery,
    ReadableView,
    TextMark,
    ViewedElement,
    ViewedFigure,
    ViewedPicture,
)
from shared.evidence.citations import CITED_ID
from shared.evidence.document_prompt import web_address
from shared.evidence.models import Citation
from shared.evidence.quote_places import Place, quote_areas, quote_places, row_places
from shared.platform.errors import NotFoundError
from shared.retrieval.models import DocumentRecord

PART_CHARS = 20_000  # some ten printed pages: a screen that loads at once (unmeasured)
_NUMBER = re.compile(r"[0-9]{1,7}", re.ASCII)


def page_number_of(text: str) -> int:
    """The number in an address.

    Raises:
        NotFoundError: no page is called so.
    """
    if not _NUMBER.fullmatch(text) or int(text) < 1:
        raise NotFoundError(f"There is no page {text[:20]!r}.", "Pages are counted from 1.")
    return int(text)


def part_starts(elements: Sequence[Element]) -> list[int]:
    """Where each part begins; the first at 0.

    A part ends before a page or a heading once it is half full, and between any two pieces when it is full.
    """
    starts = [0]
    size = 0
    last_page: int | None = None
    for index, element in enumerate(elements):
        length = len(element.text)
        is_border = element.kind == "heading" or element.page_number != last_page
        is_full = size + length > PART_CHARS or (is_border and size > PART_CHARS / 2)
        if is_full and index > starts[-1]:
            starts.append(index)
            size = 0
        size += length
        last_page = element.page_number
    return starts


def element_at(elements: Sequence[Element], seconds: float) -> int:
    """The piece that is being said at a moment of a recording; 0 where there are no moments."""
    found = 0
    for index, element in enumerate(elements):
        if element.start_seconds is not None and element.start_seconds <= seconds:
            found = index
    return found


@dataclass(frozen=True)
class Cited:
    """The citation that a view was opened with, the run that it is of, and the text around it.

    Attributes:
        rows: cells of the lines that a result was calculated from, as the sheet writes them.
    """

    run_id: str
    citation: Citation
    context: str = ""
    rows: tuple[tuple[str, ...], ...] = ()

    @property
    def query(self) -> str:
        """How an address names it."""
        return f"run={self.run_id}&n={self.citation.n}"


@dataclass(frozen=True)
class Material:
    """A document with all that its views are made from.

    Attributes:
        captions: of the pictures that can be shown, by their key.
    """

    record: DocumentRecord
    elements: tuple[Element, ...]
    page_count: int | None = None
    captions: Mapping[str, Caption] = field(default_factory=dict)
    cited: Cited | None = None

    @property
    def has_pages(self) -> bool:
        """Whether the format has pages, slides or sheets."""
        return self.page_count is not None or any(one.page_number is not None for one in self.elements)


def page_view(
    material: Material, page_number: int, picture: ViewedPicture | None = None, sheet: PageSheet | None = None
) -> PageView:
    """One page; of a document without pages, one part.

    Args:
        picture: None where the page has none.
        sheet: the picture's size and words, once it was made.

    Raises:
        NotFoundError: there is no such page.
    """
    starts, elements, cited = part_starts(material.elements), material.elements, material.cited
    last = max((element.page_number or 0 for element in elements), default=0)
    page_count = max(material.page_count or 0, last, 1) if material.has_pages else len(starts)
    if page_number > page_count:
        raise NotFoundError(f"There is no page {page_number}.", f"Its last page is {page_count}.")
    if material.has_pages:
        shown = tuple(element for element in elements if element.page_number == page_number)
    else:
        shown = elements[slice(*[*starts, None][page_number - 1 : page_number + 1])]
    places = _places(shown, cited)
    if picture is not None and sheet is not None:
        marks = quote_areas(sheet.words, cited.citation.quote, cited.context) if cited else ()
        size = {"width_px": sheet.width_px, "height_px": sheet.height_px}
        picture = picture.model_copy(update={**size, "marks": marks})
    is_marked = bool(places or (picture is not None and picture.marks))
    base = f"/api/documents/{material.record.doc_id}"
    there = f"?{cited.query}#{CITED_ID}" if cited and is_marked else f"?page={page_number}#page-{page_number}"
    content_url = f"{base}/content#page={page_number}" if picture is not None else f"{base}/content"
    return PageView(
        **dict(_text(material, shown, places, content_url, is_marked=is_marked)),
        page_number=page_number,
        page_count=page_count,
        has_pages=material.has_pages,
        picture=picture,
        readable_url=f"{base}/readable{there}" if material.has_pages else f"{base}/readable",
    )


def readable_view(material: Material, query: ReadableQuery) -> ReadableView:
    """The part of the text that was asked for: by cursor, else by citation, page or moment."""
    elements, starts, places = material.elements, part_starts(material.elements), _all_places(material)
    wanted = 0
    if query.cursor:
        wanted = int(query.cursor)
    elif places:
        wanted = places[0].index
    elif query.page:
        wanted = next((at for at, one in enumerate(elements) if (one.page_number or 0) >= query.page), 0)
    elif query.t:
        wanted = element_at(elements, query.t)
    number = bisect_right(starts, wanted) - 1
    start, end = [*starts, len(elements)][number : number + 2]
    here = [
        Place(place.index - start, place.start, place.end) for place in places if start <= place.index < end
    ]
    content_url = f"/api/documents/{material.record.doc_id}/content"
    return ReadableView(
        **dict(_text(material, elements[start:end], here, content_url, is_marked=bool(here))),
        page_count=material.page_count or material.record.page_count,
        cursor=str(end) if end < len(elements) else None,
        previous_cursor=str(starts[number - 1]) if number else None,
    )


def _all_places(material: Material) -> list[Place]:
    """Places in the whole document, by the number of the piece; on the cited page, if there are pages."""
    cited = material.cited
    if cited is None:
        return []
    page, moment = cited.citation.page_number, cited.citation.start_seconds
    elements = list(enumerate(material.elements))
    if page is not None:
        elements = [(at, one) for at, one in elements if one.page_number == page]
    elif moment is not None:
        elements = elements[element_at(material.elements, moment) :]
    found = _places([one for _, one in elements], cited)
    return [Place(elements[place.index][0], place.start, place.end) for place in found]


def _places(elements: Sequence[Element], cited: Cited | None) -> list[Place]:
    if cited is None:
        return []
    if cited.citation.kind == "table":
        return row_places([element.text for element in elements], cited.rows)
    return quote_places([element.text for element in elements], cited.citation.quote, cited.context)


def _text(
    material: Material,
    elements: Sequence[Element],
    places: Sequence[Place],
    content_url: str,
    *,
    is_marked: bool,
) -> DocumentText:
    record, cited = material.record, material.cited
    passage = None
    if cited is not None:
        named = cited.citation.model_dump(include={"n", "quote", "verified", "page_number"})
        passage = CitedPassage(run_id=cited.run_id, is_marked=is_marked, **named)
    return DocumentText(
        doc_id=record.doc_id,
        filename=record.filename,
        title=record.title,
        language=record.language,
        source_url=web_address(record.source_url),
        elements=_viewed(elements, places, material),
        cited=passage,
        content_url=content_url,
    )


def _viewed(
    elements: Sequence[Element], places: Sequence[Place], material: Material
) -> tuple[ViewedElement, ...]:
    marks: dict[int, list[TextMark]] = {}
    for place in places:
        marks.setdefault(place.index, []).append(TextMark(start=place.start, end=place.end))
    shown = []
    for index, element in enumerate(elements):
        figure = _figure(element, material)
        if element.text or figure is not None:  # else a decoration: it has no picture to show
            known = element.model_dump(exclude={"picture", "cues"})
            shown.append(ViewedElement(**known, marks=tuple(marks.get(index, ())), figure=figure))
    return tuple(shown)


def _figure(element: Element, material: Material) -> ViewedFigure | None:
    caption = material.captions.get(element.picture.key) if element.picture else None
    if element.picture is None or caption is None:
        return None
    return ViewedFigure(
        path=f"/api/documents/{material.record.doc_id}/figures/{element.picture.key}.png",
        caption=caption.text or None,
        by_model=caption.by_model,
    )
