"""The pictures of Word and PowerPoint documents, where they are placed. Linked ones are never fetched."""

from collections.abc import Iterator
from typing import Any

from shared.ingestion.parsers.charts import DRAWING
from shared.ingestion.parsers.embedded_pictures import embedded_figures
from shared.ingestion.workbench import Workbench
from shared.models.blocks import Element

_RELATIONSHIPS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_NAMED = ("docPr", "cNvPr")  # elements that carry a drawing's alternative text


def picture_elements(
    drawing: Any, part: Any, bench: Workbench, page_number: int | None = None
) -> Iterator[Element]:
    """The figures among what is drawn in an lxml element, and the words in them.

    Args:
        part: the part of python-docx or python-pptx whose relationships the drawing refers to.
    """
    for blip in drawing.iter(f"{DRAWING}blip"):
        if any(above.tag == f"{_COMPATIBILITY}Fallback" for above in blip.iterancestors()):
            continue  # a second copy, for old readers
        content = _content(part, blip.get(f"{_RELATIONSHIPS}embed"))
        if content:
            yield from embedded_figures(content, _alternative_text(blip, drawing), bench, page_number)


def _content(part: Any, relationship_id: str | None) -> bytes | None:
    """The bytes that a relationship leads to; None when it leads nowhere or outside."""
    relationship = part.rels.get(relationship_id) if relationship_id else None
    if relationship is None or relationship.is_external:
        return None
    content: bytes = relationship.target_part.blob
    return content


def _alternative_text(blip: Any, drawing: Any) -> str:
    for above in blip.iterancestors():
        for named in above.iter():
            is_named = isinstance(named.tag, str) and named.tag.rpartition("}")[2] in _NAMED
            if is_named and (text := named.get("descr")):
                return str(text)
        if above is drawing:
            break
    return ""
