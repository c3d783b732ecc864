"""Views of a document: which pieces are shown, where the cited passage is marked. Pure."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from shared.documents.models import Caption, Element
from shared.documents.page_models import (
    CitedPassage,
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
from shared.evidence.quote_places import Place, quote_areas, quote_places
from shared.platform.errors import CallerError, NotFoundError
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


def has_pages(elements: Sequence[Element]) -> bool:
    """Whether the format has pages, slides or sheets of its own."""
    return any(element.page_number is not None for element in elements)


def page_of(elements: Sequence[Element], page_number: int) -> tuple[Element, ...]:
    """The pieces of one page."""
    return tuple(element for element in elements if element.page_number == page_number)


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


def part_at(starts: Sequence[int], cursor: str) -> int:
    """The part that a cursor leads to: the one that holds the piece that it names.

    Raises:
        CallerError: it is none of ours.
    """
    if not cursor:
        return 0
    if not _NUMBER.fullmatch(cursor):
        raise CallerError("The cursor is not one of this list.", "Send the cursor of the answer before.")
    return max(part for part, start in enumerate(starts) if start <= int(cursor))


def element_at(elements: Sequence[Element], seconds: float) -> int:
    """The piece that is being said at a moment of a recording; 0 where there are no moments."""
    found = 0
    for index, element in enumerate(elements):
        if element.start_seconds is not None and element.start_seconds <= seconds:
            found = index
    return found


@dataclass(frozen=True)
class Cited:
    """The citation that a view was opened with, the run that it is of, and the text around it."""

    run_id: str
    citation: Citation
    context: str = ""

    @property
    def query(self) -> str:
        """How an address names it."""
        return f"run={self.run_id}&n={self.citation.n}"


@dataclass(frozen=True)
class Material:
    """A document with all that its views are made from.

    Attributes:
        captions: of the pictures that can be shown, by their key.
        signed: signed addresses of pictures, by their path; empty where nobody needs them.
    """

    record: DocumentRecord
    elements: tuple[Element, ...]
    page_count: int | None = None
    captions: Mapping[str, Caption] | None = None
    signed: Mapping[str, str] | None = None
    cited: Cited | None = None

    def with_signed(self, signed: Mapping[str, str]) -> "Material":
        """The same with signed addresses."""
        return replace(self, signed=signed)

    def figure_paths(self, elements: Collection[Element]) -> list[str]:
        """Addresses of the pictures among some pieces."""
        keys = [element.picture.key for element in elements if element.picture is not None]
        return [_figure_path(self.record.doc_id, key) for key in keys if key in (self.captions or {})]


def page_count_of(material: Material) -> int:
    """How many pages the document has; parts of ours, where its format has none."""
    if not has_pages(material.elements) and material.page_count is None:
        return len(part_starts(material.elements))
    last = max((element.page_number or 0 for element in material.elements), default=0)
    return max(material.page_count or 0, last, 1)


def page_elements(material: Material, page_number: int) -> tuple[Element, ...]:
    """What is shown of a page.

    Raises:
        NotFoundError: there is no such page.
    """
    count = page_count_of(material)
    if page_number > count:
        raise NotFoundError(f"There is no page {page_number}.", f"The document has {count}.")
    if has_pages(material.elements) or material.page_count is not None:
        return page_of(material.elements, page_number)
    return _part(material.elements, page_number - 1)[0]


def page_view(
    material: Material, page_number: int, picture: ViewedPicture | None = None, sheet: PageSheet | None = None
) -> PageView:
    """One page.

    Args:
        picture: None where the page has none.
        sheet: the picture's size and words, once it was made.

    Raises:
        NotFoundError: there is no such page.
    """
    shown = page_elements(material, page_number)
    places = _places(shown, material.cited)
    cited = material.cited
    if picture is not None and sheet is not None:
        quote, context = (cited.citation.quote, cited.context) if cited else ("", "")
        size = {"width_px": sheet.width_px, "height_px": sheet.height_px}
        marks = quote_areas(sheet.words, quote, context) if quote else ()
        picture = picture.model_copy(update={**size, "marks": marks})
    is_marked = bool(places or (picture is not None and picture.marks))
    paged = has_pages(material.elements) or material.page_count is not None
    base = f"/api/documents/{material.record.doc_id}"
    there = f"?{cited.query}#{CITED_ID}" if cited and is_marked else f"?page={page_number}#page-{page_number}"
    return PageView(
        **_about(material),
        page_number=page_number,
        page_count=page_count_of(material),
        has_pages=paged,
        picture=picture,
        elements=_viewed(shown, places, material),
        cited=_passage(cited, is_marked=is_marked),
        content_url=f"{base}/content#page={page_number}" if picture is not None else f"{base}/content",
        readable_url=f"{base}/readable{there}" if paged else f"{base}/readable",
    )


def readable_part(material: Material, query: ReadableQuery) -> tuple[Element, ...]:
    """The pieces that `readable_view` shows."""
    return _part(material.elements, _wanted_part(material, query, _all_places(material)))[0]


def readable_view(material: Material, query: ReadableQuery) -> ReadableView:
    """The part of the text that was asked for: by cursor, else by citation, page or moment.

    Raises:
        CallerError: the cursor is none of ours.
    """
    places = _all_places(material)
    number = _wanted_part(material, query, places)
    shown, start, starts = _part(material.elements, number)
    here = [
        Place(place.index - start, place.start, place.end)
        for place in places
        if start <= place.index < start + len(shown)
    ]
    return ReadableView(
        **_about(material),
        page_count=material.page_count or material.record.page_count,
        elements=_viewed(shown, here, material),
        cited=_passage(material.cited, is_marked=bool(here)),
        content_url=f"/api/documents/{material.record.doc_id}/content",
        cursor=str(starts[number + 1]) if number + 1 < len(starts) else None,
        previous_cursor=str(starts[number - 1]) if number else None,
    )


def _wanted_part(material: Material, query: ReadableQuery, places: Sequence[Place]) -> int:
    elements = material.elements
    starts = part_starts(elements)
    if query.cursor:
        return part_at(starts, query.cursor)
    wanted = 0
    if places:
        wanted = places[0].index
    elif query.page:
        wanted = next((at for at, one in enumerate(elements) if (one.page_number or 0) >= query.page), 0)
    elif query.t:
        wanted = element_at(elements, query.t)
    return part_at(starts, str(wanted))


def _part(elements: Sequence[Element], number: int) -> tuple[tuple[Element, ...], int, list[int]]:
    starts = part_starts(elements)
    start = starts[number]
    end = starts[number + 1] if number + 1 < len(starts) else len(elements)
    return tuple(elements[start:end]), start, starts


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
        elements = [(at, one) for at, one in elements if (one.start_seconds or 0.0) >= moment]
    found = _places([one for _, one in elements], cited)
    return [Place(elements[place.index][0], place.start, place.end) for place in found]


def _places(elements: Sequence[Element], cited: Cited | None) -> list[Place]:
    if cited is None:
        return []
    return quote_places([element.text for element in elements], cited.citation.quote, cited.context)


def _about(material: Material) -> dict[str, str | None]:
    record = material.record
    return {
        "doc_id": record.doc_id,
        "filename": record.filename,
        "title": record.title,
        "language": record.language,
        "source_url": web_address(record.source_url),
    }


def _passage(cited: Cited | None, *, is_marked: bool) -> CitedPassage | None:
    if cited is None:
        return None
    return CitedPassage(
        run_id=cited.run_id,
        n=cited.citation.n,
        quote=cited.citation.quote,
        verified=cited.citation.verified,
        page_number=cited.citation.page_number,
        is_marked=is_marked,
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
        if not element.text and figure is None:
            continue  # a decoration: it has no picture of its own
        shown.append(
            ViewedElement(
                kind=element.kind,
                text=element.text,
                page_number=element.page_number,
                level=element.level,
                start_seconds=element.start_seconds,
                marks=tuple(marks.get(index, ())),
                figure=figure,
            )
        )
    return tuple(shown)


def _figure(element: Element, material: Material) -> ViewedFigure | None:
    caption = (material.captions or {}).get(element.picture.key) if element.picture else None
    if element.picture is None or caption is None:
        return None
    path = _figure_path(material.record.doc_id, element.picture.key)
    return ViewedFigure(
        path=path,
        image_url=(material.signed or {}).get(path),
        caption=caption.text or None,
        by_model=caption.by_model,
    )


def _figure_path(doc_id: str, key: str) -> str:
    return f"/api/documents/{doc_id}/figures/{key}.png"
