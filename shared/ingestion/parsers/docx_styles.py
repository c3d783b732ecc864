"""What a Word paragraph is by its style: a heading, a list item, code. Styles inherit from one another."""

import re
from dataclasses import dataclass
from typing import Any

from shared.ingestion.parsers.docx_text import WORD

# Built-in styles keep their English names in the file, whatever language Word shows them in.
_HEADING = re.compile(r"heading ([1-9])\Z", re.IGNORECASE)
_CODE = re.compile(r"(?:source ?code|code|code block|html preformatted|verbatim)\Z", re.IGNORECASE)
_BODY_OUTLINE_LEVEL = 9
_MAX_HEADING_LEVEL = 6
_MAX_ANCESTORS = 20  # a chain that is longer runs in a circle


@dataclass(frozen=True)
class ParagraphShape:
    """What a paragraph is.

    Attributes:
        heading_level: 1-6; None for no heading.
        list_id, list_level: the numbering it takes part in.
    """

    heading_level: int | None = None
    list_id: str | None = None
    list_level: int = 0
    is_code: bool = False


class Styles:
    """The paragraph styles of one document."""

    def __init__(self, styles: Any) -> None:
        """`styles` is the root of styles.xml."""
        self._styles = {style.get(f"{WORD}styleId"): style for style in styles.findall(f"{WORD}style")}
        self._default = next(
            (
                key
                for key, style in self._styles.items()
                if style.get(f"{WORD}type") == "paragraph" and style.get(f"{WORD}default") in ("1", "true")
            ),
            None,
        )

    def shape(self, paragraph: Any) -> ParagraphShape:
        """What the paragraph's own properties say, else those of its style and the styles it is based on."""
        own = paragraph.find(f"{WORD}pPr")
        chain = self._chain(_value(own, "pStyle") or self._default)
        names = [_value(style, "name") or "" for style in chain]
        properties = [own, *(style.find(f"{WORD}pPr") for style in chain)]
        list_id = _first(properties, f"numPr/{WORD}numId")
        level = _first(properties, f"numPr/{WORD}ilvl")
        return ParagraphShape(
            heading_level=_heading_level(names, _first(properties, "outlineLvl")),
            list_id=None if list_id == "0" else list_id,
            list_level=int(level) if level and level.isdigit() else 0,
            is_code=any(_CODE.match(name) for name in names),
        )

    def _chain(self, style_id: str | None) -> list[Any]:
        chain: list[Any] = []
        while style_id in self._styles and len(chain) < _MAX_ANCESTORS:
            style = self._styles[style_id]
            chain.append(style)
            style_id = _value(style, "basedOn")
        return chain


def _heading_level(names: list[str], outline_level: str | None) -> int | None:
    if names and names[0].lower() == "title":
        return 1
    if outline_level and outline_level.isdigit():
        level = int(outline_level)
        return None if level >= _BODY_OUTLINE_LEVEL else min(level + 1, _MAX_HEADING_LEVEL)
    named = next((match for name in names if (match := _HEADING.match(name))), None)
    return min(int(named[1]), _MAX_HEADING_LEVEL) if named else None


def _first(properties: list[Any], name: str) -> str | None:
    return next((value for part in properties if (value := _value(part, name)) is not None), None)


def _value(element: Any | None, name: str) -> str | None:
    found = None if element is None else element.find(f"{WORD}{name}")
    return None if found is None else found.get(f"{WORD}val")
