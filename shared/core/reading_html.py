"""Pieces of a document as HTML. Pure. Nothing of a document is markup: every text is escaped.

What is said beside the text (a caption's origin, the page) is in English, as all of the API's own words are.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby, pairwise

from shared.core.evidence import CITED_ID
from shared.core.moments import clock_time, moment_url
from shared.models.page_views import TextMark, ViewedElement, ViewedFigure

_MAX_LEVEL = 6
_PIPE = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|(?: *:?-+:? *\|)+ *")
_BULLET = re.compile(r"[-\u2013\u2022\u00b7\u25aa\u25cf*o]\s+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # not allowed in HTML text
BY_MODEL = "Described by a model; the picture itself is the source."


class ElementsHtml:
    """Writes the pieces of one view; the first mark of all gets the anchor."""

    def __init__(
        self, source_url: str | None = None, *, shows_pages: bool = False, anchor: str = CITED_ID
    ) -> None:
        """Begin a view.

        Args:
            source_url: where a recording can be seen.
            shows_pages: a line where a page begins.
            anchor: what an address calls the first mark.
        """
        self._anchor_name = anchor
        self._source_url = source_url
        self._shows_pages = shows_pages
        self._is_anchored = False
        self._page: int | None = None
        self._anchors: set[str] = set()

    def written(self, elements: Sequence[ViewedElement]) -> str:
        """The HTML of all pieces; list items that follow each other are one list."""
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
        text = self._marked(element, after_bullet(element), len(element.text))
        if element.kind == "heading":
            level = min(_MAX_LEVEL, (element.level or 1) + 1)  # the document's title is the page's h1
            return f"<h{level}{self._anchor(element)}>{text}</h{level}>"
        if element.kind == "code":
            return f'<pre tabindex="0"><code>{text}</code></pre>'
        tag = "li" if element.kind == "list_item" else "p"
        return f"<{tag}{self._anchor(element)}>{self._moment(element)}{text}</{tag}>"

    def _anchor(self, element: ViewedElement) -> str:
        """Where the address of a moment leads."""
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
        words = self._marked(element, 0, len(element.text))
        if element.figure is None:
            return f'<p class="none">[Figure] {words}</p>'
        figure = element.figure
        is_said = bool(figure.caption) and element.text in (figure.caption or "") and not element.marks
        lines = [words] if words and not is_said else []
        if figure.caption and figure.caption != element.text:
            lines.append(as_text(figure.caption))
        if figure.by_model:
            lines.append(f"<small>{BY_MODEL}</small>")
        said = "<br>".join(lines)
        caption = f'<figcaption dir="auto">{said}</figcaption>' if said else ""
        return f'<figure class="picture">{_image(figure, element.text)}{caption}</figure>'

    def _table(self, element: ViewedElement) -> str:
        rows = list(table_rows(element.text))
        if not rows:
            return f"<p>{self._marked(element, 0, len(element.text))}</p>"
        header, *body = (
            [self._marked(element, start, end).replace("\\|", "|") for start, end in row] for row in rows
        )
        cells = "".join(f'<th scope="col">{cell}</th>' for cell in header)
        lines = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body)
        return (
            f'<div class="scroll" tabindex="0" role="group" aria-label="Table"><table><thead><tr>{cells}</tr>'
            f"</thead><tbody>{lines}</tbody></table></div>"
        )

    def _marked(self, element: ViewedElement, start: int, end: int) -> str:
        """The characters from `start` to `end`, with the marks that touch them."""
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
    """Where the text of a list item begins: some formats keep the sign before it, and a list has its own."""
    found = _BULLET.match(element.text) if element.kind == "list_item" else None
    return found.end() if found else 0


def moment_id(seconds: float) -> str:
    """The anchor of a moment: `t-83`. Fractions are cut off, as in the addresses that lead there."""
    return f"t-{max(0, int(seconds))}"


def table_rows(markdown: str) -> Iterator[list[tuple[int, int]]]:
    """The cells of a Markdown table as (start, end) in its text, row by row, without the rule."""
    offset = 0
    for line in markdown.split("\n"):
        if line.startswith("|") and not _RULE.fullmatch(line):
            borders = [found.start() for found in _PIPE.finditer(line)]
            yield [_stripped(line, left + 1, right, offset) for left, right in pairwise(borders)]
        offset += len(line) + 1


def _stripped(line: str, start: int, end: int, offset: int) -> tuple[int, int]:
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
    """Text as it may stand in HTML, also between quotes."""
    return escape(_CONTROL.sub("", text))
