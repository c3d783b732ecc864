"""Creation of page views and readable views: selection of the elements to show, and location of the cited
passage.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shared.documents.models import Caption, Element
from shared.documents.page_models import (
    CitedPassage,
    DocumentText,
    Outline,
    PageSheet,
    PageView,
    ReadableQuery,
    ReadableView,
    TextMark,
    ViewedElement,
    ViewedFigure,
    ViewedPicture,
)
from shared.documents.reading import part_at_moment, part_from_page, part_with, parts_of_page
from shared.evidence.citations import CITED_ID
from shared.evidence.models import Citation
from shared.evidence.quote_places import Place, quote_areas, quote_places, row_places
from shared.evidence.source_links import source_address, web_address
from shared.platform.errors import NotFoundError
from shared.retrieval.models import DocumentRecord

_NUMBER = re.compile(r"[0-9]{1,7}", re.ASCII)


def page_number_of(text: str) -> int:
    """Parse the page number in a URL. Raise `NotFoundError` if it isn't a whole number of at least 1.

    Raises:
        NotFoundError: the text isn't a page number.
    """
    if not _NUMBER.fullmatch(text) or int(text) < 1:
        raise NotFoundError(f"There is no page {text[:20]!r}.", "Pages are counted from 1.")
    return int(text)


@dataclass(frozen=True)
class Cited:
    """Citation to highlight in a view, with its run and the text around the cited passage.

    Attributes:
        rows: cells of the rows from which a result was calculated, as written in the sheet.
    """

    run_id: str
    citation: Citation
    context: str = ""
    rows: tuple[tuple[str, ...], ...] = ()

    @property
    def query(self) -> str:
        """The URL query parameters that name the citation."""
        return f"run={self.run_id}&n={self.citation.n}"


@dataclass(frozen=True)
class Material:
    """Document with the data needed to render one of its views.

    Attributes:
        elements: elements of one or more parts.
        captions: captions of the pictures, keyed by picture key.
    """

    record: DocumentRecord
    outline: Outline
    elements: tuple[Element, ...] = ()
    captions: Mapping[str, Caption] = field(default_factory=dict)
    cited: Cited | None = None

    @property
    def has_pages(self) -> bool:
        """Whether the document has pages, slides or sheets."""
        return self.outline.page_count is not None or self.outline.last_page > 0


def shown_parts(outline: Outline, page_number: int) -> range:
    """Return the range of parts that contain a page. In documents without pages, each part counts as a page.

    Raises:
        NotFoundError: the page doesn't exist.
    """
    has_pages = outline.page_count is not None or outline.last_page > 0
    page_count = _page_count(outline) if has_pages else len(outline.parts)
    if page_number > page_count:
        raise NotFoundError(f"There is no page {page_number}.", f"The last page is {page_count}.")
    return parts_of_page(outline, page_number) if has_pages else range(page_number - 1, page_number)


def _page_count(outline: Outline) -> int:
    return max(outline.page_count or 0, outline.last_page, 1)


def page_view(
    material: Material, page_number: int, picture: ViewedPicture | None = None, sheet: PageSheet | None = None
) -> PageView:
    """Return the view of one page. `material` must contain all elements of the parts that `shown_parts`
    returned for this page.

    Args:
        picture: None if the page has none.
        sheet: size and words of the picture; None if it isn't rendered yet.
    """
    elements, cited, outline = material.elements, material.cited, material.outline
    if material.has_pages:
        elements = tuple(element for element in elements if element.page_number == page_number)
    places = passage_places([element.text for element in elements], cited)
    if picture is not None and sheet is not None:
        marks = quote_areas(sheet.words, cited.citation.quote, cited.context) if cited else ()
        size = {"width_px": sheet.width_px, "height_px": sheet.height_px}
        picture = picture.model_copy(update={**size, "marks": marks})
    is_marked = bool(places or (picture is not None and picture.marks))
    base = f"/api/documents/{material.record.doc_id}"
    there = f"?{cited.query}#{CITED_ID}" if cited and is_marked else f"?page={page_number}#page-{page_number}"
    content_url = f"{base}/content#page={page_number}" if picture is not None else f"{base}/content"
    text = _text(material, elements, places, content_url, is_marked=is_marked)
    source_url = source_address(text.source_url, text.filename, page_number)
    text = text.model_copy(update={"source_url": source_url})
    return PageView(
        **dict(text),
        page_number=page_number,
        page_count=_page_count(outline) if material.has_pages else len(outline.parts),
        has_pages=material.has_pages,
        picture=picture,
        readable_url=f"{base}/readable{there}" if material.has_pages else f"{base}/readable",
    )


def starting_part(outline: Outline, query: ReadableQuery, places: Sequence[Place]) -> int:
    """Return the index of the part at which the readable view starts. The cursor takes precedence over the
    cited passage, then the page, then the time; without any, the view starts at part 0.

    `places` are the cited passage's positions in the whole document.
    """
    if query.cursor:
        return part_with(outline, int(query.cursor))
    if places:
        return part_with(outline, places[0].index)
    if query.page:
        return part_from_page(outline, query.page)
    return part_at_moment(outline, query.t) if query.t else 0


def readable_view(material: Material, number: int, places: Sequence[Place] = ()) -> ReadableView:
    """Return the readable view of part `number`. The cited passage is highlighted if it is in this part."""
    parts, start = material.outline.parts, material.outline.parts[number].start
    end = start + len(material.elements)
    here = [
        Place(place.index - start, place.start, place.end) for place in places if start <= place.index < end
    ]
    content_url = f"/api/documents/{material.record.doc_id}/content"
    return ReadableView(
        **dict(_text(material, material.elements, here, content_url, is_marked=bool(here))),
        page_count=material.outline.page_count or material.record.page_count,
        cursor=str(end) if number + 1 < len(parts) else None,
        previous_cursor=str(parts[number - 1].start) if number else None,
    )


def elements_to_search(
    pieces: Sequence[Element], first_index: int, citation: Citation
) -> list[tuple[int, str]]:
    """Return the index and text of each element that may contain the cited passage: the elements of the cited
    page, or of a recording from the cited time on.

    `first_index` is the index of `pieces[0]` in the document.
    """
    numbered = list(enumerate(pieces, first_index))
    if citation.page_number is not None:
        return [(index, one.text) for index, one in numbered if one.page_number == citation.page_number]
    moment = -1.0 if citation.start_seconds is None else citation.start_seconds
    starts = [(at, one.start_seconds) for at, one in enumerate(pieces) if one.start_seconds is not None]
    started = [at for at, seconds in starts if seconds <= moment]
    return [(index, one.text) for index, one in numbered[started[-1] if started else 0 :]]


def passage_places(texts: Sequence[str], cited: Cited | None) -> list[Place]:
    """Return the positions of the cited passage in the texts of the given elements. For a citation of a
    table, these are the positions of the cited rows.
    """
    if cited is None:
        return []
    if cited.citation.kind == "table":
        return row_places(texts, cited.rows)
    return quote_places(texts, cited.citation.quote, cited.context)


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
        fields = cited.citation.model_dump(include={"n", "quote", "verified", "page_number"})
        passage = CitedPassage(run_id=cited.run_id, is_marked=is_marked, **fields)
    return DocumentText(
        doc_id=record.doc_id,
        filename=record.filename,
        title=record.title,
        language=record.language,
        source_url=web_address(record.source_url),
        elements=_views_of(elements, places, material),
        cited=passage,
        content_url=content_url,
    )


def _views_of(
    elements: Sequence[Element], places: Sequence[Place], material: Material
) -> tuple[ViewedElement, ...]:
    marks: dict[int, list[TextMark]] = {}
    for place in places:
        marks.setdefault(place.index, []).append(TextMark(start=place.start, end=place.end))
    views = []
    for index, element in enumerate(elements):
        figure = _figure(element, material)
        # Skip decorative elements, which have neither text nor picture.
        if element.text or figure is not None:
            fields = element.model_dump(exclude={"picture", "cues"})
            views.append(ViewedElement(**fields, marks=tuple(marks.get(index, ())), figure=figure))
    return tuple(views)


def _figure(element: Element, material: Material) -> ViewedFigure | None:
    caption = material.captions.get(element.picture.key) if element.picture else None
    if element.picture is None or caption is None:
        return None
    return ViewedFigure(
        path=f"/api/documents/{material.record.doc_id}/figures/{element.picture.key}.png",
        width_px=element.picture.width_px,
        height_px=element.picture.height_px,
        caption=caption.text or None,
        by_model=caption.by_model,
    )
