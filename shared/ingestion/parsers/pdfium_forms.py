"""Reading of form field values and typed notes from PDFium annotations.

It may only be used in the worker process.
"""

import ctypes
import re
from collections.abc import Callable, Iterator
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from shared.ingestion.parsers.pdf_content import TICKED, UNTICKED, FieldKind, FormField
from shared.ingestion.parsers.pdf_geometry import sorted_region
from shared.ingestion.parsers.pdfium_text import clean_text

# Annotation flags "hidden" and "no view". Source: PDF 32000-1, table 165.
_HIDDEN_FLAGS = 0x02 | 0x20
# Flag of password fields. Source: PDF 32000-1, table 228.
_PASSWORD_FLAG = 1 << 13
# Maximum number of annotations per page. A page full of links has hundreds.
_MAX_ANNOTATIONS = 5000
_MAX_VALUE_CHARS = 20_000
_LAST_PART = re.compile(r"(?:.*\.)?([^.]+)\Z", re.DOTALL)
# Matches field names that are meant for people. They consist of words, whereas generated names contain
# numbers.
_FOR_PEOPLE = re.compile(r"[^\W\d_]{2,}(?:[ _-][^\W\d_]+)*:?\Z")


def open_form(document: Any) -> None:
    """Initialise the forms of a pypdfium2 document. Call this before any page is opened."""
    try:
        document.init_forms()
    except pypdfium2.PdfiumError:
        # The forms are damaged. Only the values of their fields are lost.
        return


def flatten(document: Any, index: int) -> Any:
    """Return the page at `index`, with its filled fields and notes merged into the rendered content."""
    page = document[index]
    if not any(True for _ in form_fields(page)):
        return page
    pdfium.FPDFPage_Flatten(page, pdfium.FLAT_NORMALDISPLAY)
    # Reopen the page, because its handles refer to the content before the fields were merged.
    page.close()
    return document[index]


def form_fields(page: Any) -> Iterator[FormField]:
    """Yield the visible and non-empty form fields and notes of a pypdfium2 page."""
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            if not pdfium.FPDFAnnot_GetFlags(annotation) & _HIDDEN_FLAGS:
                yield from _fields_of(annotation, page.formenv)
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)


def _fields_of(annotation: Any, form: Any) -> Iterator[FormField]:
    kind = pdfium.FPDFAnnot_GetSubtype(annotation)
    if kind == pdfium.FPDF_ANNOT_FREETEXT:
        contents = _value(
            lambda buffer, size: pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", buffer, size)
        )
        yield from _boxed(annotation, contents, "note")
    elif kind == pdfium.FPDF_ANNOT_WIDGET and form:
        yield from _field(annotation, form)


def _field(annotation: Any, form: Any) -> Iterator[FormField]:
    def text(read: Callable[..., int]) -> str:
        return _value(lambda buffer, size: read(form, annotation, buffer, size))

    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
    is_text = kind in (
        pdfium.FPDF_FORMFIELD_TEXTFIELD,
        pdfium.FPDF_FORMFIELD_COMBOBOX,
        pdfium.FPDF_FORMFIELD_LISTBOX,
    )
    label = text(pdfium.FPDFAnnot_GetFormFieldAlternateName)
    name = label or _name_for_people(text(pdfium.FPDFAnnot_GetFormFieldName))
    if kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON):
        sign = TICKED if pdfium.FPDFAnnot_IsChecked(form, annotation) else UNTICKED
        yield from _boxed(annotation, sign, "tick", name)
    elif is_text and not pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD_FLAG:
        yield from _boxed(annotation, text(pdfium.FPDFAnnot_GetFormFieldValue), "value", name)


def _name_for_people(name: str) -> str:
    """Return the last part of a field name that is meant for people, such as "Family name" for "form.page
    1.Family name". Return "" for a generated name such as "f1_01[0]".
    """
    match = _LAST_PART.match(name)
    return match[1] if match is not None and _FOR_PEOPLE.match(match[1]) else ""


def _boxed(annotation: Any, text: str, kind: FieldKind, name: str = "") -> Iterator[FormField]:
    box = pdfium.FS_RECTF()
    if text and pdfium.FPDFAnnot_GetRect(annotation, box):
        yield FormField(text, kind, name, sorted_region(box))


def _value(read: Callable[[Any, int], int]) -> str:
    """Return a text that a PDFium function writes to a buffer as UTF-16. `read` is called twice, the first
    time for the size.
    """
    size = min(read(None, 0), 2 * _MAX_VALUE_CHARS)
    # The text is empty except for its terminator.
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    read(ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), size)
    return clean_text(buffer.raw.decode("utf-16-le", "ignore").replace("\x00", ""))
