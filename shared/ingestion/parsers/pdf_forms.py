"""What people filled into a PDF: values of form fields, ticks, and text typed onto a page.

None of it is part of a page's own text, and all of it is what its readers see first. A value joins the line
that stands beside its field; where none does, it is a line of its own that begins with the field's name.
"""

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from shared.ingestion.parsers.pdf_geometry import Region, sorted_region
from shared.ingestion.parsers.pdf_lines import Line, clean_text

TICKED, UNTICKED = "[x]", "[ ]"  # as in Word documents
_HIDDEN_FLAGS = 0x02 | 0x20  # PDF 32000-1, table 165: hidden, no view
_PASSWORD_FLAG = 1 << 13  # table 228
_MAX_ANNOTATIONS = 5000  # of a page; a page of links has hundreds
_MAX_VALUE_CHARS = 20_000
_MAX_GAP_POINTS = 60.0  # between a tick and its words

_LAST_PART = re.compile(r"(?:.*\.)?([^.]+)\Z", re.DOTALL)
_FOR_PEOPLE = re.compile(r"[^\W\d_]{2,}(?:[ _-][^\W\d_]+)*:?\Z")  # words; none of a program's numbered names

FilledKind = Literal["value", "tick", "note"]


@dataclass(frozen=True)
class Filled:
    """One field or note, and where it stands.

    Attributes:
        name: what the field is called, empty where only a program would call it so.
    """

    text: str
    kind: FilledKind
    name: str
    box: Region

    @property
    def middle(self) -> float:
        return (self.box.bottom + self.box.top) / 2


def open_form(document: Any) -> None:
    """Have PDFium read the fields of a pypdfium2 document that has some; before any page is opened."""
    import pypdfium2

    try:
        document.init_forms()
    except pypdfium2.PdfiumError:
        return  # a broken form costs its values, not the document


def flatten(document: Any, index: int) -> Any:
    """The page as its readers see it: what was filled in is part of what is drawn."""
    import pypdfium2.raw as pdfium

    page = document[index]
    if not any(True for _ in filled_in(page)):
        return page
    pdfium.FPDFPage_Flatten(page, pdfium.FLAT_NORMALDISPLAY)
    page.close()  # its handles are of the page as it was
    return document[index]


def filled_in(page: Any) -> Iterator[Filled]:
    """The fields and notes of a pypdfium2 page that say something."""
    import pypdfium2.raw as pdfium

    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            if not pdfium.FPDFAnnot_GetFlags(annotation) & _HIDDEN_FLAGS:
                yield from _said(annotation, page.formenv)
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)


def with_filled(lines: Sequence[Line], filled: Sequence[Filled], page_number: int) -> list[Line]:
    """The lines of a page with what was filled in, each where it stands."""
    placed = list(lines)
    for one in sorted(filled, key=lambda found: (-found.middle, found.box.left)):
        position = _label(placed, one)
        if position is not None:
            placed[position] = _joined(placed[position], one)
        elif one.kind != "tick" or (one.text == TICKED and one.name):
            placed.insert(_place(placed, one), _own_line(placed, one, page_number))
    return placed


def _said(annotation: Any, form: Any) -> Iterator[Filled]:
    import pypdfium2.raw as pdfium

    kind = pdfium.FPDFAnnot_GetSubtype(annotation)
    if kind == pdfium.FPDF_ANNOT_FREETEXT:
        contents = _text(
            lambda buffer, size: pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", buffer, size)
        )
        yield from _boxed(annotation, contents, "note")
    elif kind == pdfium.FPDF_ANNOT_WIDGET and form:
        yield from _field(annotation, form)


def _field(annotation: Any, form: Any) -> Iterator[Filled]:
    import pypdfium2.raw as pdfium

    def text(read: Callable[..., int]) -> str:
        return _text(lambda buffer, size: read(form, annotation, buffer, size))

    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
    is_text = kind in (
        pdfium.FPDF_FORMFIELD_TEXTFIELD,
        pdfium.FPDF_FORMFIELD_COMBOBOX,
        pdfium.FPDF_FORMFIELD_LISTBOX,
    )
    told = text(pdfium.FPDFAnnot_GetFormFieldAlternateName)
    name = told or _name_for_people(text(pdfium.FPDFAnnot_GetFormFieldName))
    if kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON):
        sign = TICKED if pdfium.FPDFAnnot_IsChecked(form, annotation) else UNTICKED
        yield from _boxed(annotation, sign, "tick", name)
    elif is_text and not pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD_FLAG:
        yield from _boxed(annotation, text(pdfium.FPDFAnnot_GetFormFieldValue), "value", name)


def _name_for_people(name: str) -> str:
    """The last part of a name such as "form.page 1.Family name"; nothing of "f1_01[0]"."""
    found = _LAST_PART.match(name)
    return found[1] if found is not None and _FOR_PEOPLE.match(found[1]) else ""


def _boxed(annotation: Any, text: str, kind: FilledKind, name: str = "") -> Iterator[Filled]:
    import pypdfium2.raw as pdfium

    box = pdfium.FS_RECTF()
    if text and pdfium.FPDFAnnot_GetRect(annotation, box):
        yield Filled(text, kind, name, sorted_region(box))


def _text(read: Callable[[Any, int], int]) -> str:
    """What a function of PDFium writes into a buffer, in UTF-16: asked once for its size."""
    import pypdfium2.raw as pdfium

    size = min(read(None, 0), 2 * _MAX_VALUE_CHARS)
    if size <= 2:  # the final zero
        return ""
    buffer = ctypes.create_string_buffer(size)
    read(ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), size)
    return clean_text(buffer.raw.decode("utf-16-le", "ignore").replace("\x00", ""))


def _label(lines: Sequence[Line], one: Filled) -> int | None:
    """The line that the field belongs to: words right behind a tick, else the nearest before the field."""
    level = [place for place, line in enumerate(lines) if line.bottom <= one.middle <= line.top]
    behind = [place for place in level if 0 <= lines[place].left - one.box.right + 2 <= _MAX_GAP_POINTS]
    before = [place for place in level if lines[place].right <= one.box.left + 2]
    if one.kind == "tick":
        return min(behind, key=lambda place: lines[place].left, default=None)
    if one.kind == "note":
        return None
    return max(before, key=lambda place: lines[place].right, default=None)


def _joined(line: Line, one: Filled) -> Line:
    if one.kind == "tick":
        return replace(line, text=f"{one.text} {line.text}", left=one.box.left)
    return replace(line, text=f"{line.text} {one.text}", right=one.box.right)


def _place(lines: Sequence[Line], one: Filled) -> int:
    """Behind the lowest line that stands higher."""
    higher = [place for place, line in enumerate(lines) if line.bottom >= one.middle]
    return min(higher, key=lambda place: lines[place].bottom) + 1 if higher else 0


def _own_line(lines: Sequence[Line], one: Filled, page_number: int) -> Line:
    sizes = sorted(line.size for line in lines)
    return Line(
        text=f"{one.name.rstrip(': ')}: {one.text}" if one.name else one.text,
        page_number=page_number,
        size=sizes[len(sizes) // 2] if sizes else 10.0,
        bold=False,
        left=one.box.left,
        right=one.box.right,
        top=one.box.top,
        bottom=one.box.bottom,
    )
