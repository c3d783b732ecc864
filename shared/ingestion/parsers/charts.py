"""Charts and diagrams of Office documents: the figures behind the drawing, and the words in it."""

from collections.abc import Iterator
from typing import Any

from shared.ingestion.parsers.markdown_table import table_elements
from shared.models.blocks import Element

CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_RELATIONSHIPS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_MAX_POINTS = 10_000  # of a series; a chart with more is a cloud, and its table is elsewhere


def drawn_elements(drawing: Any, part: Any, page_number: int | None = None) -> Iterator[Element]:
    """Title and table of each chart, words of each diagram that `drawing` refers to.

    Args:
        drawing: an lxml element that holds references.
        part: the part of python-docx or python-pptx whose relationships they are.
    """
    for reference in drawing.iter(f"{CHART}chart"):
        root = _root(part, reference.get(f"{_RELATIONSHIPS}id"))
        if root is not None:
            yield from _chart(root, page_number)
    for reference in drawing.iter(f"{DIAGRAM}relIds"):
        root = _root(part, reference.get(f"{_RELATIONSHIPS}dm"))
        for point in root.iter(f"{DIAGRAM}pt") if root is not None else ():
            if text := _words(point):
                yield Element(kind="list_item", text=f"- {text}", page_number=page_number)


def _root(part: Any, relationship_id: str | None) -> Any | None:
    """The XML that a relationship leads to; None when it leads nowhere or to something else."""
    from docx.oxml.parser import parse_xml

    try:
        return parse_xml(part.rels[relationship_id].target_part.blob)
    except (KeyError, SyntaxError, ValueError):
        return None


def _chart(root: Any, page_number: int | None) -> Iterator[Element]:
    title = root.find(f"{CHART}chart/{CHART}title")
    if title is not None and (text := _words(title)):
        yield Element(kind="paragraph", text=text, page_number=page_number)
    series = list(root.iter(f"{CHART}ser"))
    categories = next((found for one in series if (found := _points(one, "cat", "xVal"))), {})
    columns = [_points(one, "val", "yVal") for one in series]
    header = ["", *(" ".join(_points(one, "tx").values()) for one in series)]
    indices = sorted({index for column in (categories, *columns) for index in column})[:_MAX_POINTS]
    rows = [
        [categories.get(index, str(index + 1)), *(column.get(index, "") for column in columns)]
        for index in indices
    ]
    if rows:
        yield from table_elements([header, *rows], page_number)


def _points(series: Any, *names: str) -> dict[int, str]:
    """Index -> value of a series' categories or values, as they were when the file was saved."""
    for name in names:
        found = series.find(f"{CHART}{name}")
        if found is not None:
            points = found.iter(f"{CHART}pt")
            return {int(point.get("idx", "0")): _value(point.findtext(f"{CHART}v") or "") for point in points}
    return {}


def _value(text: str) -> str:
    """A number without the noise of its binary form."""
    try:
        return f"{float(text):.12g}"
    except ValueError:
        return text


def _words(element: Any) -> str:
    paragraphs = element.iter(f"{DRAWING}p")
    texts = ("".join(run.text or "" for run in paragraph.iter(f"{DRAWING}t")) for paragraph in paragraphs)
    return " ".join(" ".join(texts).split())
