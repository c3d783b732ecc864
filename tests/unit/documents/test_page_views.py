"""Tests for views of a document: division into parts, highlighting, and escaping of all document text."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from shared.documents.models import Caption, Element, Picture
from shared.documents.page_html import BY_MODEL, POLICY, STYLE, page_html, readable_html, readable_markdown
from shared.documents.page_models import PageSheet, PageView, ReadableQuery, ReadableView, ViewedPicture
from shared.documents.page_views import (
    Cited,
    Material,
    elements_to_search,
    page_number_of,
    page_view,
    passage_places,
    readable_view,
    shown_parts,
    starting_part,
)
from shared.documents.reading import (
    PART_CHARS,
    decode,
    encode,
    part_at_moment,
    part_starts,
    parts_of_page,
)
from shared.evidence.models import Citation, PageArea, PageWord
from shared.evidence.quote_places import Place
from shared.platform.errors import NotFoundError
from shared.retrieval.models import DocumentRecord


def piece(chars: int, page: int | None = None, kind: str = "paragraph") -> Element:
    return Element.model_validate({"kind": kind, "text": "x" * chars, "page_number": page})


def test_no_part_is_larger_than_it_may_be_unless_one_piece_is() -> None:
    elements = [piece(3000) for _ in range(40)] + [piece(3 * PART_CHARS), piece(10)]
    starts = part_starts(elements)
    ends = [*starts[1:], len(elements)]
    sizes = [sum(len(one.text) for one in elements[a:b]) for a, b in zip(starts, ends, strict=True)]
    assert sum(sizes) == sum(len(one.text) for one in elements)
    assert [size for size in sizes if size > PART_CHARS] == [3 * PART_CHARS]


def test_a_part_that_is_half_full_ends_before_a_heading_and_before_a_page() -> None:
    half = PART_CHARS // 2 + 1
    assert part_starts([piece(half), piece(5, kind="heading"), piece(5)]) == [0, 1]
    assert part_starts([piece(half, 1), piece(5, 2), piece(5, 2)]) == [0, 1]
    assert part_starts([piece(5, 1), piece(5, 2)]) == [0]
    assert part_starts([]) == [0]


def test_a_part_holds_so_many_pieces_however_short_they_are() -> None:
    starts = part_starts([piece(0)] * 2500)
    assert starts == [0, 1000, 2000]


def test_a_moment_leads_to_the_part_that_is_being_said() -> None:
    transcript = [
        Element(kind="paragraph", text="x" * 15_000, start_seconds=second) for second in (0.0, 5.5, 83.2)
    ]
    outline = encode(transcript, None)[0]
    assert [part_at_moment(outline, second) for second in (0, 5, 6, 83.2, 900)] == [0, 0, 1, 2, 2]
    assert part_at_moment(encode([piece(3)], None)[0], 60) == 0


def test_parts_are_stored_one_by_one() -> None:
    pieces = tuple(piece(15_000, page) for page in (1, 2, 2, 5))
    outline, content = encode(pieces, 9)
    decoded = [decode(content[one.first_byte : one.first_byte + one.size_bytes]) for one in outline.parts]
    assert [one for part in decoded for one in part] == list(pieces)
    assert (outline.piece_count, outline.page_count, outline.last_page) == (4, 9, 5)
    assert [parts_of_page(outline, page) for page in (1, 2, 3, 5)] == [
        range(1),
        range(1, 3),
        range(0),
        range(3, 4),
    ]


@pytest.mark.parametrize("text", ["0", "-1", "1.0", "x", "", "٣", "99999999", "1 "])
def test_what_is_no_page_number_is_not_there(text: str) -> None:
    with pytest.raises(NotFoundError):
        page_number_of(text)


HOSTILE = "<script>alert('1')</script><img src=x onerror=alert(1)>\"&\x00"
RECORD = DocumentRecord(
    doc_id="d1", filename="m.pdf", title=f"Pumps {HOSTILE}", upload_date=datetime(2026, 1, 1, tzinfo=UTC)
)
KEY = f"{5:064x}"
ELEMENTS = (
    Element(kind="heading", text=f"1 Setup {HOSTILE}", page_number=1, level=1),
    Element(kind="paragraph", text=f"The pump runs at 15 bar. {HOSTILE}", page_number=1),
    Element(kind="list_item", text="first", page_number=1),
    Element(kind="list_item", text="- second", page_number=1),
    Element(
        kind="table",
        text="| Model | Weight |\n| --- | --- |\n| P1 \\| P2 | 40 <b>kg</b> |",
        page_number=2,
    ),
    Element(
        kind="figure",
        text="Figure 1",
        page_number=2,
        picture=Picture(key=KEY, width_px=10, height_px=10),
    ),
    Element(kind="figure", text="", page_number=2, picture=Picture(key="f" * 64, width_px=1, height_px=1)),
    Element(kind="code", text="if (a < b) { }", page_number=2),
)
CAPTIONS = {KEY: Caption(text="A <i>pump</i> in section.", by_model=True)}


def cited(quote: str, page: int | None = 1) -> Cited:
    citation = Citation(
        n=2,
        doc_id="d1",
        block_id="b",
        filename="m.pdf",
        page_number=page,
        quote=quote,
        verified=True,
        url="x",
    )
    return Cited("r1", citation)


def of(
    elements: Sequence[Element],
    quoted: Cited | None = None,
    page_count: int | None = None,
    captions: Mapping[str, Caption] | None = None,
    record: DocumentRecord = RECORD,
) -> Material:
    """Return the material for the views of a document, with defaults for the parts a test does not need."""
    image_captions = CAPTIONS if captions is None else captions
    return Material(record, encode(elements, page_count)[0], tuple(elements), image_captions, quoted)


def page_of(material: Material, number: int, *drawn: Any) -> PageView:
    """Return the view of a page from the parts of the document that it needs."""
    return page_view(_narrowed(material, shown_parts(material.outline, number)), number, *drawn)


def text_of(material: Material, **query: Any) -> ReadableView:
    """Return the readable view of the part that a query selects."""
    candidates: list[tuple[int, str]] = []
    if material.cited is not None:
        candidates = elements_to_search(material.elements, 0, material.cited.citation)
    places = [
        Place(candidates[place.index][0], place.start, place.end)
        for place in passage_places([text for _, text in candidates], material.cited)
    ]
    number = starting_part(material.outline, ReadableQuery(**query), places)
    return readable_view(_narrowed(material, range(number, number + 1)), number, places)


def _narrowed(material: Material, parts: range) -> Material:
    starts = [*(part.start for part in material.outline.parts), len(material.elements)]
    elements = material.elements[starts[parts.start] : starts[parts.stop]] if parts else ()
    return replace(material, elements=elements)


def material(quote: str | None = None, elements: tuple[Element, ...] = ELEMENTS) -> Material:
    return of(elements, cited(quote) if quote else None, 3 if elements is ELEMENTS else None)


class Tags(HTMLParser):
    """A parser that collects the tags and attributes that a browser would see."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs


def test_a_page_shows_its_own_pieces_and_marks_the_passage_in_text_and_picture() -> None:
    area = PageArea(left=0.1, top=0.2, right=0.3, bottom=0.25)
    words = tuple(PageWord(text=text, area=area) for text in ("The", "pump", "runs", "at", "15", "bar."))
    sheet = PageSheet(width_px=100, height_px=200, words=words)
    picture = ViewedPicture(path="/api/documents/d1/pages/1/image")
    view = page_of(material("runs at 15 bar"), 1, picture, sheet)
    assert [one.kind for one in view.elements] == ["heading", "paragraph", "list_item", "list_item"]
    (mark,) = view.elements[1].marks
    assert view.elements[1].text[mark.start : mark.end] == "runs at 15 bar"
    assert view.picture is not None
    assert view.picture.marks == (area,)
    assert (view.picture.width_px, view.page_count, view.has_pages) == (100, 3, True)
    assert view.cited is not None
    assert view.cited.is_marked
    assert view.readable_url == "/api/documents/d1/readable?run=r1&n=2#cited"
    assert view.content_url == "/api/documents/d1/content#page=1"
    page = page_html(view)
    assert page.count('<mark id="cited-text">runs at 15 bar</mark>') == 1
    assert page.count('id="cited"') == 1
    assert '<rect x="100.0" y="200.0" rx="3" width="200.0" height="50.0"/>' in page


def test_a_passage_of_another_page_is_told_of_with_its_address() -> None:
    view = page_of(material("runs at 15 bar"), 2)
    assert view.cited is not None
    assert not view.cited.is_marked
    assert 'href="/api/documents/d1/pages/1?run=r1&amp;n=2"' in page_html(view)


def test_pages_lead_to_their_neighbours_and_there_are_no_others() -> None:
    first, last = page_html(page_of(material(), 1)), page_html(page_of(material(), 3))
    assert 'rel="next" href="/api/documents/d1/pages/2"' in first
    assert 'rel="prev"' not in first
    assert 'rel="prev" href="/api/documents/d1/pages/2"' in last
    assert 'rel="next"' not in last
    assert "No text was found on this page." in last
    with pytest.raises(NotFoundError):
        page_of(material(), 4)


def test_nothing_of_a_document_becomes_markup() -> None:
    pages = [page_html(page_of(material("runs at 15 bar"), number)) for number in (1, 2)]
    pages.append(readable_html(text_of(material("runs at 15 bar"))))
    for page in pages:
        tags = Tags(page)
        assert not {"script", "b", "i", "iframe", "object", "form"} & set(tags.names)
        assert [name for name, _ in tags.attributes if name.startswith("on") or name == "style"] == []
        assert {value for name, value in tags.attributes if name == "src"} <= {
            f"/api/documents/d1/figures/{KEY}.png"
        }
        assert "\x00" not in page


def test_the_policy_allows_the_style_of_the_page_and_nothing_that_runs() -> None:
    page = page_html(page_of(material(), 1))
    style = page.partition("<style>")[2].partition("</style>")[0]
    assert style == STYLE
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in POLICY
    assert POLICY.startswith("default-src 'none'; ")
    assert "script" not in POLICY
    assert "unsafe" not in POLICY


def test_a_table_is_a_table_and_a_model_is_named_where_it_described_a_picture() -> None:
    page = page_html(page_of(material(), 2))
    assert '<th scope="col">Model</th><th scope="col">Weight</th>' in page
    assert "<td>P1 | P2</td><td>40 &lt;b&gt;kg&lt;/b&gt;</td>" in page
    assert page.count("<tr>") == 2
    assert "A &lt;i&gt;pump&lt;/i&gt; in section." in page
    assert BY_MODEL in page
    assert page.count("<img") == 1, "a picture that is no figure is not shown"


def test_a_figure_has_the_size_of_its_picture() -> None:
    figures = [element.figure for element in page_of(material(), 2).elements if element.figure]
    assert [(one.width_px, one.height_px) for one in figures] == [(10, 10)]


def test_a_figure_whose_caption_says_its_name_says_it_once() -> None:
    captions = {KEY: Caption(text="Figure 1: A pump.", by_model=False)}
    page = page_html(page_of(of(ELEMENTS, page_count=3, captions=captions), 2))
    assert '<figcaption dir="auto">Figure 1: A pump.</figcaption>' in page


def test_an_item_of_a_list_has_one_bullet() -> None:
    page = page_html(page_of(material(), 1))
    assert "<ul>\n<li>first</li>\n<li>second</li>\n</ul>" in page


def test_a_passage_in_a_table_is_marked_in_its_cells() -> None:
    material = of(ELEMENTS, cited("| P1 \\| P2 | 40 <b>kg</b> |", 2), 3)
    page = page_html(page_of(material, 2))
    assert '<td><mark id="cited">P1 | P2</mark></td>' in page


def test_the_whole_text_opens_where_the_passage_stands() -> None:
    many = tuple(Element(kind="paragraph", text=f"Number {n}. " + "x" * 3000) for n in range(30))
    opened = text_of(of(many, cited("Number 20.", None)))
    assert any(element.marks for element in opened.elements)
    assert (opened.previous_cursor, opened.cursor) == ("12", "24")
    first = text_of(of(many))
    assert (first.previous_cursor, first.elements[0].text[:9]) == (None, "Number 0.")
    seen = [first]
    while seen[-1].cursor:
        seen.append(text_of(of(many), cursor=seen[-1].cursor))
    assert [one.text for view in seen for one in view.elements] == [one.text for one in many]


def test_the_whole_text_opens_at_a_page_and_at_a_moment() -> None:
    paged = tuple(Element(kind="paragraph", text="x" * 15_000, page_number=n) for n in (1, 2, 3))
    assert text_of(of(paged), page=3).elements[0].page_number == 3
    transcript = tuple(Element(kind="paragraph", text="x" * 15_000, start_seconds=n * 60.0) for n in range(3))
    view = text_of(of(transcript), t=61)
    assert view.elements[0].start_seconds == 60.0
    assert 'id="t-60"' in readable_html(view)


def test_a_moment_leads_to_the_recording_if_somebody_said_where_it_is() -> None:
    transcript = (Element(kind="paragraph", text="Hello.", start_seconds=83.4),)
    record = RECORD.model_copy(update={"source_url": "https://video.example/talk"})
    page = readable_html(text_of(of(transcript, record=record)))
    assert 'href="https://video.example/talk#t=83">01:23</a>' in page
    hostile = RECORD.model_copy(update={"source_url": "javascript:alert(1)"})
    assert "javascript" not in readable_html(text_of(of(transcript, record=hostile)))


def test_a_document_without_pages_is_read_in_parts() -> None:
    many = tuple(Element(kind="paragraph", text="x" * 3000) for _ in range(30))
    view = page_of(of(many), 2)
    assert (view.has_pages, view.page_count, view.readable_url) == (False, 5, "/api/documents/d1/readable")
    assert "Part 2 of 5" in page_html(view)


def test_markdown_keeps_what_was_written_and_reads_no_sign_into_it() -> None:
    text = readable_markdown(text_of(material()))
    assert text.startswith("# Pumps \\<script>")
    assert "## 1 Setup" in text
    assert "- first\n- second\n" in text
    assert "| P1 \\| P2 | 40 &lt;b>kg&lt;/b> |" in text
    assert f"![Figure 1](/api/documents/d1/figures/{KEY}.png)\n*A \\<i>pump\\</i> in section.*" in text
    assert f"*({BY_MODEL})*" in text
    assert "```\nif (a < b) { }\n```" in text


def test_a_heading_that_repeats_the_title_is_written_once() -> None:
    elements = (
        Element(kind="heading", text=f" {RECORD.title} ", level=1),
        Element(kind="paragraph", text="Hives."),
    )
    text = readable_markdown(readable_view(of(elements), 0))
    assert text.startswith("# Pumps ")
    assert text.count("Pumps") == 1
    assert text.endswith("\n\nHives.\n")


@pytest.mark.parametrize(
    ("line", "escaped"),
    [
        ("# no heading", "\\# no heading"),
        ("1. no item", "1\\. no item"),
        ("a *b* [c](d)", "a \\*b\\* \\[c\\](d)"),
    ],
)
def test_a_line_that_looks_like_markup_stays_text(line: str, escaped: str) -> None:
    view = text_of(of((Element(kind="paragraph", text=line),)))
    assert readable_markdown(view).endswith(f"\n\n{escaped}\n")


def test_the_source_of_a_pdf_opens_at_the_page() -> None:
    record = RECORD.model_copy(
        update={"source_url": "https://contoso.sharepoint.com/a.pdf", "filename": "a.pdf"}
    )
    view = page_view(replace(material(), record=record), 2)
    assert view.source_url == "https://contoso.sharepoint.com/a.pdf#page=2"
    record = record.model_copy(update={"filename": "a.pptx"})
    assert page_view(replace(material(), record=record), 2).source_url == record.source_url
