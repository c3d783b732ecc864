"""Pieces of a document as Markdown. Pure. What Markdown or HTML would read as a sign is escaped."""

import re
from collections.abc import Sequence

from shared.core.moments import clock_time
from shared.core.reading_html import BY_MODEL, after_bullet
from shared.models.page_views import ReadableView, ViewedElement

_SIGNS = re.compile(r"[\\`*_\[\]<]")
_LINE_START = re.compile(r"^(\s*)(#{1,6}\s|[-+>]\s?|={3,}|~{3,})", re.MULTILINE)
_NUMBERED = re.compile(r"^(\s*\d+)([.)]\s)", re.MULTILINE)
_FENCE = re.compile(r"`{3,}")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def readable_markdown(view: ReadableView) -> str:
    """A part of the whole text; the first part begins with the document's title."""
    parts = [] if view.previous_cursor else [f"# {_escaped(view.title or view.filename)}"]
    parts += [_element(element) for element in view.elements]
    return "\n\n".join(_joined_lists(parts, view.elements)) + "\n"


def _joined_lists(parts: Sequence[str], elements: Sequence[ViewedElement]) -> list[str]:
    """Items of a list without blank lines between them."""
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
    text = _escaped(element.text[after_bullet(element) :])
    if element.kind == "heading":
        return f"{'#' * min(6, (element.level or 1) + 1)} {' '.join(text.split())}"
    if element.kind == "list_item":
        return f"- {text}"
    if element.kind == "figure":
        return _figure(element)
    moment = f"**{clock_time(element.start_seconds)}** " if element.start_seconds is not None else ""
    return moment + text


def _figure(element: ViewedElement) -> str:
    label = _escaped(" ".join(element.text.split()))
    if element.figure is None:
        return f"*\\[Figure\\] {label}*" if label else "*\\[Figure\\]*"
    caption = _escaped(" ".join((element.figure.caption or "").split()))
    lines = [f"![{label or caption or 'Figure'}]({element.figure.path})"]
    if caption and caption != label:
        lines.append(f"*{caption}*")
    if element.figure.by_model:
        lines.append(f"*({BY_MODEL})*")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    signs = _SIGNS.sub(r"\\\g<0>", _CONTROL.sub("", text))
    return _NUMBERED.sub(r"\1\\\2", _LINE_START.sub(r"\1\\\2", signs))
