"""Rendering of document views as HTML pages without scripts, and as Markdown."""

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby, pairwise
from pathlib import Path

from shared.documents.page_models import (
    CitedPassage,
    DocumentText,
    PageView,
    ReadableView,
    TextMark,
    ViewedElement,
    ViewedFigure,
    ViewedPicture,
)
from shared.evidence.citations import CITED_ID
from shared.evidence.source_links import clock_time, moment_url

_MAX_LEVEL = 6
_PIPE = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|(?: *:?-+:? *\|)+ *")
_BULLET = re.compile(r"[-\u2013\u2022\u00b7\u25aa\u25cf*o]\s+")
# Control characters that HTML text must not contain.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
BY_MODEL = "Described by a model; the picture itself is the source."


class ElementsHtml:
    """Renderer for the elements of one view. The first highlighted passage gets an anchor, to which links can
    point.
    """

    def __init__(
        self, source_url: str | None = None, *, shows_pages: bool = False, anchor: str = CITED_ID
    ) -> None:
        """Create a renderer for one view.

        Args:
            source_url: URL of the recording.
            shows_pages: whether to render a line where a page starts.
            anchor: HTML id of the first highlighted passage.
        """
        self._anchor_name = anchor
        self._source_url = source_url
        self._shows_pages = shows_pages
        self._is_anchored = False
        self._page: int | None = None
        self._anchors: set[str] = set()

    def render(self, elements: Sequence[ViewedElement]) -> str:
        """Return the HTML of the elements. Consecutive list items become one list."""
        parts: list[str] = []
        for key, group in groupby(elements, key=lambda one: (one.kind == "list_item", one.page_number)):
            is_list, page_number = key
            parts += self._page_line(page_number)
            items = [self._element(element) for element in group]
            parts += ["<ul>", *items, "</ul>"] if is_list else items
        return "\n".join(parts)

    def _page_line(self, page_number: int | None) -> Iterator[str]:
        if self._shows_pages and page_number is not None and page_number != self._page:
            self._page = page_number
            yield f'<div class="page" id="page-{page_number}">Page {page_number}</div>'

    def _element(self, element: ViewedElement) -> str:
        if element.kind == "figure":
            return self._figure(element)
        if element.kind == "table":
            return self._table(element)
        text = self._highlight(element, after_bullet(element), len(element.text))
        if element.kind == "heading":
            # The h1 of the page is the document's title, so headings start at h2.
            level = min(_MAX_LEVEL, (element.level or 1) + 1)
            return f"<h{level}{self._anchor(element)}>{text}</h{level}>"
        if element.kind == "code":
            return f'<pre tabindex="0"><code>{text}</code></pre>'
        tag = "li" if element.kind == "list_item" else "p"
        return f"<{tag}{self._anchor(element)}>{self._moment(element)}{text}</{tag}>"

    def _anchor(self, element: ViewedElement) -> str:
        """Return an HTML id attribute for the time of an element in the recording. Return "" if the element
        has no time, or if an earlier element already has this id.
        """
        if element.start_seconds is None or (name := moment_id(element.start_seconds)) in self._anchors:
            return ""
        self._anchors.add(name)
        return f' id="{name}"'

    def _moment(self, element: ViewedElement) -> str:
        if element.start_seconds is None:
            return ""
        clock = clock_time(element.start_seconds)
        address = moment_url(self._source_url, element.start_seconds)
        if address is None:
            return f'<span class="moment">{clock}</span>'
        return f'<a class="moment" rel="noreferrer noopener" href="{escape(address)}">{clock}</a>'

    def _figure(self, element: ViewedElement) -> str:
        words = self._highlight(element, 0, len(element.text))
        if element.figure is None:
            return f'<p class="none">[Figure] {words}</p>'
        figure = element.figure
        is_said = bool(figure.caption) and element.text in (figure.caption or "") and not element.marks
        lines = [words] if words and not is_said else []
        if figure.caption and figure.caption != element.text:
            lines.append(as_text(figure.caption))
        if figure.by_model:
            lines.append(f"<small>{BY_MODEL}</small>")
        html = "<br>".join(lines)
        caption = f'<figcaption dir="auto">{html}</figcaption>' if html else ""
        return f'<figure class="picture">{_image(figure, element.text)}{caption}</figure>'

    def _table(self, element: ViewedElement) -> str:
        rows = list(table_rows(element.text))
        if not rows:
            return f"<p>{self._highlight(element, 0, len(element.text))}</p>"
        header, *body = (
            [self._highlight(element, start, end).replace("\\|", "|") for start, end in row] for row in rows
        )
        cells = "".join(f'<th scope="col">{cell}</th>' for cell in header)
        lines = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body)
        return (
            f'<div class="scroll" tabindex="0" role="group" aria-label="Table"><table><thead><tr>{cells}</tr>'
            f"</thead><tbody>{lines}</tbody></table></div>"
        )

    def _highlight(self, element: ViewedElement, start: int, end: int) -> str:
        """Return the text of an element from `start` to `end` as HTML. Parts that belong to the cited passage
        are highlighted.
        """
        parts: list[str] = []
        position = start
        for mark in _within(element.marks, start, end):
            parts.append(as_text(element.text[position : mark.start]))
            anchor = "" if self._is_anchored else f' id="{self._anchor_name}"'
            self._is_anchored = True
            parts.append(f"<mark{anchor}>{as_text(element.text[mark.start : mark.end])}</mark>")
            position = mark.end
        parts.append(as_text(element.text[position:end]))
        return "".join(parts)


def after_bullet(element: ViewedElement) -> int:
    """Return the offset after the bullet of a list item, because HTML adds its own bullet. For other
    elements, return 0.
    """
    match = _BULLET.match(element.text) if element.kind == "list_item" else None
    return match.end() if match else 0


def moment_id(seconds: float) -> str:
    """Return the anchor of a time in a recording, such as `t-83`. Fractions of a second are cut off, as in
    links.
    """
    return f"t-{max(0, int(seconds))}"


def table_rows(markdown: str) -> Iterator[list[tuple[int, int]]]:
    """Yield the rows of a Markdown table, without the delimiter row. Each row is a list of cells, given as
    (start, end) offsets in the text.
    """
    offset = 0
    for line in markdown.split("\n"):
        if line.startswith("|") and not _RULE.fullmatch(line):
            borders = [match.start() for match in _PIPE.finditer(line)]
            yield [_strip(line, left + 1, right, offset) for left, right in pairwise(borders)]
        offset += len(line) + 1


def _strip(line: str, start: int, end: int, offset: int) -> tuple[int, int]:
    cell = line[start:end]
    first = start + len(cell) - len(cell.lstrip())
    return offset + first, offset + max(first, start + len(cell.rstrip()))


def _within(marks: Sequence[TextMark], start: int, end: int) -> Iterator[TextMark]:
    for mark in marks:
        if mark.start < end and mark.end > start:
            yield TextMark(start=max(mark.start, start), end=min(mark.end, end))


def _image(figure: ViewedFigure, label: str) -> str:
    alternative = as_text(" ".join((figure.caption or label or "Figure").split()))
    return f'<img loading="lazy" src="{escape(figure.path)}" alt="{alternative}">'


def as_text(text: str) -> str:
    """Escape text for use in HTML elements and attributes, and remove control characters."""
    return escape(_CONTROL.sub("", text))


_SIGNS = re.compile(r"[\\`*_\[\]<]")
_LINE_START = re.compile(r"^([^\S\n]*)(#{1,6}\s|[-+>]\s?|={3,}|~{3,})", re.MULTILINE)
_NUMBERED = re.compile(r"^([^\S\n]*\d+)([.)]\s)", re.MULTILINE)
_FENCE = re.compile(r"`{3,}")


def readable_markdown(view: ReadableView) -> str:
    """Render a part of a document's text as Markdown.

    The first part starts with the document's title, without a first heading that repeats it.
    """
    title, elements = view.title or view.filename, view.elements
    parts = []
    if not view.previous_cursor:
        parts = [f"# {_escape(title)}"]
        if elements and elements[0].kind == "heading" and _plain(elements[0].text) == _plain(title):
            elements = elements[1:]
    parts += [_element(element) for element in elements]
    return "\n\n".join(_join_lists(parts, elements)) + "\n"


def page_markdown(view: PageView) -> str:
    """Render the text of a page as Markdown."""
    parts = [_element(element) for element in view.elements]
    return "\n\n".join(_join_lists(parts, view.elements)) + "\n"


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _join_lists(parts: Sequence[str], elements: Sequence[ViewedElement]) -> list[str]:
    """Return the rendered elements with consecutive list items joined, so that no blank lines separate
    them.
    """
    joined: list[str] = list(parts[: len(parts) - len(elements)])
    was_item = False
    for part, element in zip(parts[len(joined) :], elements, strict=True):
        is_item = element.kind == "list_item"
        if is_item and was_item:
            joined[-1] += f"\n{part}"
        else:
            joined.append(part)
        was_item = is_item
    return joined


def _element(element: ViewedElement) -> str:
    if element.kind == "table":
        return _CONTROL.sub("", element.text).replace("<", "&lt;")
    if element.kind == "code":
        fence = max([*_FENCE.findall(element.text), "``"], key=len) + "`"
        return f"{fence}\n{_CONTROL.sub('', element.text)}\n{fence}"
    text = _escape(element.text[after_bullet(element) :])
    if element.kind == "heading":
        return f"{'#' * min(6, (element.level or 1) + 1)} {' '.join(text.split())}"
    if element.kind == "list_item":
        return f"- {text}"
    if element.kind == "figure":
        return _figure(element)
    moment = f"**{clock_time(element.start_seconds)}** " if element.start_seconds is not None else ""
    return moment + text


def _figure(element: ViewedElement) -> str:
    label = _escape(" ".join(element.text.split()))
    if element.figure is None:
        return f"*\\[Figure\\] {label}*" if label else "*\\[Figure\\]*"
    caption = _escape(" ".join((element.figure.caption or "").split()))
    lines = [f"![{label or caption or 'Figure'}]({element.figure.path})"]
    if caption and caption != label:
        lines.append(f"*{caption}*")
    if element.figure.by_model:
        lines.append(f"*({BY_MODEL})*")
    return "\n".join(lines)


def _escape(text: str) -> str:
    signs = _SIGNS.sub(r"\\\g<0>", _CONTROL.sub("", text))
    return _NUMBERED.sub(r"\1\\\2", _LINE_START.sub(r"\1\\\2", signs))


STYLE = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")

_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""What a browser may load for such a page (Content Security Policy, level 3)."""

TEXT_ID = "cited-text"
"""The anchor of the first marked place in the text, where the picture has marks, too."""

# Fraction of the page height that stays visible above a passage when a link scrolls to it.
_SEEN_ABOVE = 0.12


def page_html(view: PageView) -> str:
    """Render one page of a document as HTML: its picture, with the cited passage highlighted, next to its
    text.
    """
    noun = "Page" if view.has_pages else "Part"
    place = f"{noun} {view.page_number} of {view.page_count}"
    path = f"/api/documents/{view.doc_id}/pages"
    before = f"{path}/{view.page_number - 1}" if view.page_number > 1 else None
    after = f"{path}/{view.page_number + 1}" if view.page_number < view.page_count else None
    links = [
        _link(before, f"Previous {noun.lower()}", "prev"),
        _link(after, f"Next {noun.lower()}", "next"),
        _link(view.readable_url, "Whole text"),
        *_sources(view),
    ]
    # If the passage is highlighted in the picture, links lead to the picture instead of the text.
    anchor = TEXT_ID if _has_boxes(view) else CITED_ID
    text = ElementsHtml(view.source_url, anchor=anchor).render(view.elements)
    if not text:
        text = f'<p class="none">No text was found on this {noun.lower()}.</p>'
    body = [
        _cited(view.cited, view),
        "" if view.picture is None else _sheet(view.picture, place, view.filename),
        _text(text, f"Text of {place.lower()}", view.language),
    ]
    return _page(view, place, links, body, columns="one" if view.picture is None else "two")


def readable_html(view: ReadableView) -> str:
    """Render a part of a document's continuous text as HTML, with links to the previous and next part."""
    path = f"/api/documents/{view.doc_id}/readable"
    is_first = view.previous_cursor is None
    links = [
        _link(None if is_first else f"{path}?cursor={view.previous_cursor}", "Previous part", "prev"),
        _link(f"{path}?cursor={view.cursor}" if view.cursor else None, "Next part", "next"),
        *_sources(view),
    ]
    if is_first and view.cursor is None:
        links = links[2:]
    text = ElementsHtml(view.source_url, shows_pages=True).render(view.elements)
    if not text:
        text = '<p class="none">No text was found in this document.</p>'
    body = [_cited(view.cited, view), _text(text, "Text of the document", view.language)]
    return _page(view, "Readable view", links, body, columns="one")


def _page(view: DocumentText, place: str, links: list[str], body: list[str], columns: str) -> str:
    title = view.title or view.filename
    about = place if title == view.filename else f"{view.filename} · {place}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{as_text(title)} · {as_text(place)}</title>
<style>{STYLE}</style>
</head>
<body>
<a class="skip" href="#text">Skip to the text</a>
<header>
<h1 dir="auto"{_lang(view.language)}>{as_text(title)}</h1>
<p class="about">{as_text(about)}</p>
<nav aria-label="Document">{" ".join(link for link in links if link)}</nav>
</header>
<main id="text" class="{columns}" tabindex="-1">
{chr(10).join(part for part in body if part)}
</main>
</body>
</html>
"""


def _link(address: str | None, words: str, relation: str = "") -> str:
    if address is None:
        return f'<span class="off">{words}</span>'
    rel = f' rel="{relation}"' if relation else ""
    return f'<a{rel} href="{as_text(address)}">{words}</a>'


def _sources(view: DocumentText) -> list[str]:
    links = [_link(view.content_url, "Open the file")]
    if view.source_url:
        links.append(_link(view.source_url, "Original source", "noreferrer noopener"))
    return links


def _cited(cited: CitedPassage | None, view: DocumentText) -> str:
    if cited is None:
        return ""
    badge = '<span class="badge">verbatim in the document</span>' if cited.verified else "from a description"
    return (
        f'<aside class="cited" aria-label="Cited passage"><p><strong>Cited passage [{cited.n}]</strong> · '
        f"{badge}</p>\n<blockquote>{as_text(cited.quote)}</blockquote>\n{_where(cited, view)}</aside>"
    )


def _where(cited: CitedPassage, view: DocumentText) -> str:
    """Return an HTML paragraph that says where on this page the cited passage is highlighted, or why it
    isn't.
    """
    if isinstance(view, PageView) and _has_boxes(view):
        in_text = any(element.marks for element in view.elements)
        second = f' · <a href="#{TEXT_ID}">in the text</a>' if in_text else ""
        return f'<p>Marked: <a href="#{CITED_ID}">in the picture</a>{second}</p>'
    if cited.is_marked:
        return f'<p>Marked: <a href="#{CITED_ID}">in the text</a></p>'
    page_number = view.page_number if isinstance(view, PageView) and view.has_pages else None
    if cited.page_number is not None and page_number is not None and cited.page_number != page_number:
        address = f"/api/documents/{view.doc_id}/pages/{cited.page_number}?run={cited.run_id}&n={cited.n}"
        return f'<p>The passage is on <a href="{as_text(address)}">page {cited.page_number}</a>.</p>'
    return "<p>The passage could not be marked here. The document may have changed since it was cited.</p>"


def _has_boxes(view: PageView) -> bool:
    return view.picture is not None and bool(view.picture.marks)


def _sheet(picture: ViewedPicture, place: str, filename: str) -> str:
    size = ""
    if picture.width_px and picture.height_px:
        size = f' width="{picture.width_px}" height="{picture.height_px}"'
    words = f"{place} of {filename} as a picture. Its text follows."
    boxes = "".join(
        f'<rect x="{area.left * 1000:.1f}" y="{area.top * 1000:.1f}" rx="3" '
        f'width="{(area.right - area.left) * 1000:.1f}" height="{(area.bottom - area.top) * 1000:.1f}"/>'
        for area in picture.marks
    )
    if boxes:
        top = max(0.0, min(area.top for area in picture.marks) - _SEEN_ABOVE)
        boxes = (
            f'<rect id="{CITED_ID}" class="anchor" x="0" y="{top * 1000:.1f}" width="1" height="1"/>{boxes}'
        )
    overlay = (
        f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" aria-hidden="true">{boxes}</svg>'
        if boxes
        else ""
    )
    image = f'<img src="{as_text(picture.path)}"{size} alt="{as_text(words)}">'
    return f'<figure class="sheet">{image}{overlay}</figure>'


def _text(text: str, label: str, language: str | None) -> str:
    about = f'dir="auto" aria-label="{as_text(label)}"{_lang(language)}'
    return f'<section class="text" {about}>\n{text}\n</section>'


def _lang(language: str | None) -> str:
    return f' lang="{as_text(language)}"' if language else ""
