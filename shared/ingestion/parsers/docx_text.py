"""The text of a Word paragraph as a reader sees it: insertions in, deletions out, fields by their result.

Elements are lxml's, in the WordprocessingML namespace; nothing here changes them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_CHECKBOX = "{http://schemas.microsoft.com/office/word/2010/wordml}checkbox"

# Not part of the running text: layout, what was deleted, field codes, and what comes as blocks of its own.
_SKIPPED = frozenset(
    [f"{WORD}{name}" for name in "del moveFrom instrText delText delInstrText rPr pPr sdtPr ruby".split()]
    + [f"{WORD}{name}" for name in "drawing pict object txbxContent footnoteReference p tbl".split()]
    + [f"{_COMPATIBILITY}{name}" for name in ("AlternateContent", "Fallback")]
)
_MARKS = {f"{WORD}tab": " ", f"{WORD}br": "\n", f"{WORD}cr": "\n", f"{WORD}noBreakHyphen": "-"}


def paragraph_text(paragraph: Any) -> str:
    """The text, white space folded, forced line breaks kept."""
    lines = "".join(_pieces(paragraph)).split("\n")
    return "\n".join(line for line in (" ".join(raw.split()) for raw in lines) if line)


def boxed_blocks(paragraph: Any) -> Iterator[Any]:
    """The contents of the text boxes that are anchored in a paragraph, outermost ones only.

    A box is stored twice, for new readers (Choice) and for old ones (Fallback); only one is taken.
    """
    for child in paragraph:
        if child.tag == f"{WORD}txbxContent":
            yield child
        elif child.tag == f"{_COMPATIBILITY}AlternateContent":
            choices = child.findall(f"{_COMPATIBILITY}Choice") or list(child)
            yield from boxed_blocks(choices[0]) if choices else ()
        elif isinstance(child.tag, str) and child.tag != f"{_COMPATIBILITY}Fallback":
            yield from boxed_blocks(child)


def note_references(paragraph: Any) -> list[tuple[str, str]]:
    """The notes that are referred to, in order: "footnote" or "endnote", and its id."""
    return [
        (reference.tag.removeprefix(WORD).removesuffix("Reference"), reference.get(f"{WORD}id", ""))
        for reference in paragraph.iter(f"{WORD}footnoteReference", f"{WORD}endnoteReference")
    ]


def _pieces(element: Any) -> Iterator[str]:
    for child in element:
        tag = child.tag
        if tag == f"{WORD}t":
            yield child.text or ""
        elif tag in _MARKS:
            yield _MARKS[tag]
        elif tag == f"{WORD}sdt" and child.find(f"{WORD}sdtPr/{_CHECKBOX}") is not None:
            yield _checkbox(child)
        elif tag == f"{MATH}oMath":
            yield f" {formula(child)} "
        elif tag not in _SKIPPED and isinstance(tag, str):
            yield from _pieces(child)


def _checkbox(control: Any) -> str:
    namespace = _CHECKBOX.removesuffix("checkbox")
    checked = control.find(f"{WORD}sdtPr/{_CHECKBOX}/{namespace}checked")
    is_checked = checked is not None and checked.get(f"{namespace}val") in ("1", "true", "on")
    return "[x] " if is_checked else "[ ] "


def formula(element: Any) -> str:
    """A formula on one line in the notation of LaTeX, as far as it goes; anything else by its letters."""
    known = _FORMULAS.get(element.tag)
    if known is not None:
        return known(element)
    if element.tag == f"{MATH}t":
        return element.text or ""
    return "".join(formula(child) for child in element if isinstance(child.tag, str))


def _part(element: Any, name: str) -> str:
    found = element.find(f"{MATH}{name}")
    return "" if found is None else formula(found)


def _root(element: Any) -> str:
    degree = _part(element, "deg")
    return rf"\sqrt{f'[{degree}]' if degree else ''}{{{_part(element, 'e')}}}"


def _sum(element: Any) -> str:
    symbol = element.find(f"{MATH}naryPr/{MATH}chr")
    sign = symbol.get(f"{MATH}val", "∫") if symbol is not None else "∫"
    return f"{sign}_{{{_part(element, 'sub')}}}^{{{_part(element, 'sup')}}}{_part(element, 'e')}"


def _delimited(element: Any) -> str:
    properties = element.find(f"{MATH}dPr")

    def sign(name: str, usual: str) -> str:
        found = None if properties is None else properties.find(f"{MATH}{name}")
        value: str = usual if found is None else found.get(f"{MATH}val", usual)
        return value

    inner = ",".join(formula(part) for part in element.findall(f"{MATH}e"))
    return f"{sign('begChr', '(')}{inner}{sign('endChr', ')')}"


_FORMULAS: Mapping[str, Callable[[Any], str]] = {
    f"{MATH}f": lambda e: rf"\frac{{{_part(e, 'num')}}}{{{_part(e, 'den')}}}",
    f"{MATH}sSup": lambda e: f"{_part(e, 'e')}^{{{_part(e, 'sup')}}}",
    f"{MATH}sSub": lambda e: f"{_part(e, 'e')}_{{{_part(e, 'sub')}}}",
    f"{MATH}sSubSup": lambda e: f"{_part(e, 'e')}_{{{_part(e, 'sub')}}}^{{{_part(e, 'sup')}}}",
    f"{MATH}rad": _root,
    f"{MATH}nary": _sum,
    f"{MATH}d": _delimited,
}
