"""The numbers and bullets that Word draws before paragraphs, which stand nowhere in their text.

Rules of ECMA-376 part 1, 17.9: a paragraph names a list (numId) and a level (ilvl); the list names an
abstract one with a format for each level; deeper levels begin anew after a higher one.
"""

from dataclasses import dataclass, field
from typing import Any

from shared.ingestion.parsers.docx_text import WORD

_MAX_LEVEL = 8
_NO_LIST = "0"


@dataclass
class _Level:
    format: str
    text: str
    start: int


@dataclass
class _List:
    """An abstract list: its levels, and where it has come to."""

    levels: dict[int, _Level]
    counts: dict[int, int] = field(default_factory=dict)


class Numbering:
    """Counts along; ask for each paragraph once, in document order."""

    def __init__(self, numbering: Any | None) -> None:
        """`numbering` is the root of numbering.xml; None when the document has none."""
        self._lists: dict[str, _List] = {}
        if numbering is None:
            return
        abstract = {
            element.get(f"{WORD}abstractNumId"): _List(_levels(element))
            for element in numbering.findall(f"{WORD}abstractNum")
        }
        for element in numbering.findall(f"{WORD}num"):
            reference = element.find(f"{WORD}abstractNumId")
            known = abstract.get(reference.get(f"{WORD}val")) if reference is not None else None
            overrides = _overrides(element)
            if known is not None and overrides:  # a list that begins anew counts for itself
                known = _List({**known.levels, **_restarted(known.levels, overrides)})
            if known is not None:
                self._lists[element.get(f"{WORD}numId")] = known

    def mark(self, list_id: str, level: int) -> str | None:
        """The next mark: "-" for a bullet, "2.1." for a number; None when the paragraph is in no list."""
        known = self._lists.get(list_id)
        if known is None or list_id == _NO_LIST:
            return None
        level = min(level, _MAX_LEVEL)
        shape = known.levels.get(level, _Level("bullet", "", 1))
        known.counts[level] = known.counts.get(level, shape.start - 1) + 1
        for deeper in [other for other in known.counts if other > level]:
            del known.counts[deeper]
        return "-" if shape.format in ("bullet", "none") else self._numbered(known, shape)

    def _numbered(self, known: _List, shape: _Level) -> str:
        text = shape.text
        for level in range(_MAX_LEVEL + 1):
            place = f"%{level + 1}"
            if place in text:
                other = known.levels.get(level, shape)
                text = text.replace(place, numeral(known.counts.get(level, other.start), other.format))
        return text.strip() or "-"


def numeral(number: int, style: str) -> str:
    """A number as Word writes it in one of its styles; unknown styles are decimal."""
    if style in ("lowerLetter", "upperLetter") and number > 0:
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters if style == "lowerLetter" else letters.upper()
    if style in ("lowerRoman", "upperRoman") and 0 < number < 4000:
        roman = _roman(number)
        return roman.lower() if style == "lowerRoman" else roman
    return f"{number:02d}" if style == "decimalZero" else str(number)


def _roman(number: int) -> str:
    values = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
    signs = "M CM D CD C XC L XL X IX V IV I".split()
    text = ""
    for value, sign in zip(values, signs, strict=True):
        count, number = divmod(number, value)
        text += sign * count
    return text


def _levels(abstract: Any) -> dict[int, _Level]:
    return {
        _number(element.get(f"{WORD}ilvl")): _Level(
            format=_value(element, "numFmt", "decimal"),
            text=_value(element, "lvlText", ""),
            start=_number(_value(element, "start", "1")),
        )
        for element in abstract.findall(f"{WORD}lvl")
    }


def _overrides(element: Any) -> dict[int, int]:
    return {
        _number(override.get(f"{WORD}ilvl")): _number(_value(override, "startOverride", "1"))
        for override in element.findall(f"{WORD}lvlOverride")
    }


def _restarted(levels: dict[int, _Level], overrides: dict[int, int]) -> dict[int, _Level]:
    return {
        level: _Level(levels[level].format, levels[level].text, start)
        for level, start in overrides.items()
        if level in levels
    }


def _value(element: Any, name: str, usual: str) -> str:
    found = element.find(f"{WORD}{name}")
    value: str = usual if found is None else found.get(f"{WORD}val", usual)
    return value


def _number(text: str | None) -> int:
    return int(text) if text and text.lstrip("-").isdigit() else 0
