"""Tests for the Word parser with generated documents."""

import io
import re
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from docx import Document
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import qn

from shared.documents.models import Element
from shared.ingestion.parsers.docx import numeral
from shared.platform.errors import BadDocumentError
from tests.unit.ingestion.conftest import Parse
from tests.unit.ingestion.hostile_files import docx_of, docx_with_macros

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
MATH = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
NAMESPACES = f'{WORD} {MATH} xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def changed(content: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    """Return a copy of the package with every part passed through `change`."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as parts, zipfile.ZipFile(target, "w") as package:
        for name in parts.namelist():
            package.writestr(name, change(name, parts.read(name)))
    return target.getvalue()


def texts(elements: tuple[Element, ...], kind: str) -> list[str]:
    return [element.text for element in elements if element.kind == kind]


def test_body_comes_in_order_with_headings_by_style(parse: Parse) -> None:
    document = Document()
    document.add_heading("Pump manual", 0)
    document.add_paragraph("The pump moves water.")
    document.add_heading("Safety", 2)
    document.add_paragraph("Wear gloves.")
    elements = parse(document, ".docx").elements
    assert [(e.kind, e.level, e.text) for e in elements] == [
        ("heading", 1, "Pump manual"),
        ("paragraph", None, "The pump moves water."),
        ("heading", 2, "Safety"),
        ("paragraph", None, "Wear gloves."),
    ]


def test_an_outline_level_makes_a_heading_of_a_plain_paragraph(parse: Parse) -> None:
    document = Document()
    paragraph = document.add_paragraph("Scope")
    level = OxmlElement("w:outlineLvl")
    level.set(qn("w:val"), "2")
    paragraph._p.get_or_add_pPr().append(level)
    (element,) = parse(document, ".docx").elements
    assert (element.kind, element.level) == ("heading", 3)


def test_list_items_carry_the_marks_that_word_draws(parse: Parse) -> None:
    document = Document()
    document.add_paragraph("open the valve", style="List Bullet")
    document.add_paragraph("press start", style="List Number")
    document.add_paragraph("wait", style="List Number")
    assert texts(parse(document, ".docx").elements, "list_item") == [
        "- open the valve",
        "1. press start",
        "2. wait",
    ]


@pytest.mark.parametrize(
    ("number", "style", "text"),
    [(4, "lowerRoman", "iv"), (28, "lowerLetter", "bb"), (3, "upperLetter", "C"), (7, "decimalZero", "07")],
)
def test_numbers_are_written_in_their_style(number: int, style: str, text: str) -> None:
    assert numeral(number, style) == text


def test_merged_cells_stand_in_every_place_they_cover(parse: Parse) -> None:
    document = Document()
    table = document.add_table(rows=3, cols=3)
    for row in range(3):
        for column in range(3):
            table.cell(row, column).text = f"{row}{column}"
    wide, tall = table.cell(0, 0).merge(table.cell(0, 1)), table.cell(1, 2).merge(table.cell(2, 2))
    wide.text, tall.text = "wide", "tall | high"
    (text,) = texts(parse(document, ".docx").elements, "table")
    assert text.splitlines() == [
        "| wide | wide | 02 |",
        "| --- | --- | --- |",
        "| 10 | 11 | tall \\| high |",
        "| 20 | 21 | tall \\| high |",
    ]


def test_merged_cells_of_the_header_are_joined_with_the_names_below(parse: Parse) -> None:
    document = Document()
    table = document.add_table(rows=4, cols=5)
    rows = [["Sales in k€"], ["Region", "2023", "", "2024"], ["", "Q1", "Q2", "Q1", "Q2"], list("North")]
    for row, cells in enumerate(rows):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    for first, last in [((0, 0), (0, 4)), ((1, 0), (2, 0)), ((1, 1), (1, 2)), ((1, 3), (1, 4))]:
        table.cell(*first).merge(table.cell(*last))
    title, element = parse(document, ".docx").elements
    assert (title.kind, title.text) == ("paragraph", "Sales in k€")
    assert element.text.splitlines() == [
        "| Region | 2023 Q1 | 2023 Q2 | 2024 Q1 | 2024 Q2 |",
        "| --- | --- | --- | --- | --- |",
        "| N | o | r | t | h |",
    ]


def test_a_table_of_one_cell_is_a_frame_and_a_table_in_a_cell_is_its_text(parse: Parse) -> None:
    document = Document()
    document.add_table(rows=1, cols=1).cell(0, 0).text = "Caution: hot."
    outer = document.add_table(rows=1, cols=2)
    outer.cell(0, 0).text = "left"
    inner = outer.cell(0, 1).add_table(rows=1, cols=2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "a", "b"
    elements = parse(document, ".docx").elements
    assert [(e.kind, e.text) for e in elements] == [
        ("paragraph", "Caution: hot."),
        ("table", "| left | a b |\n| --- | --- |"),
    ]


def add_paragraph(document: Any, text: str, *runs: str) -> None:
    """Add a paragraph that consists of the text and of runs given as XML."""
    paragraph = document.add_paragraph(text)
    for run in runs:
        paragraph._p.append(parse_xml(run.replace(">", f" {NAMESPACES}>", 1)))


def test_insertions_are_read_and_deletions_and_field_codes_are_not(parse: Parse) -> None:
    document = Document()
    add_paragraph(
        document,
        "Pay ",
        "<w:ins><w:r><w:t>ninety</w:t><w:noBreakHyphen/><w:t>nine</w:t></w:r></w:ins>",
        "<w:del><w:r><w:delText>eighty</w:delText></w:r></w:del>",
        "<w:r><w:instrText>PAGEREF</w:instrText><w:br/><w:t>euros</w:t></w:r>",
    )
    (element,) = parse(document, ".docx").elements
    assert element.text == "Pay ninety-nine\neuros"


def test_text_boxes_are_read_once_after_their_paragraph(parse: Parse) -> None:
    document = Document()
    box = "<w:txbxContent><w:p><w:r><w:t>In the box.</w:t></w:r></w:p></w:txbxContent>"
    choice = f"<mc:Choice><w:drawing>{box}</w:drawing></mc:Choice>"
    fallback = f"<mc:Fallback><w:pict>{box}</w:pict></mc:Fallback>"
    add_paragraph(
        document, "Before.", f"<w:r><mc:AlternateContent>{choice}{fallback}</mc:AlternateContent></w:r>"
    )
    assert texts(parse(document, ".docx").elements, "paragraph") == ["Before.", "In the box."]


def test_formulas_are_written_out(parse: Parse) -> None:
    document = Document()
    run = "<m:r><m:t>{}</m:t></m:r>"
    fraction = f"<m:f><m:num>{run.format('a')}</m:num><m:den>{run.format('b')}</m:den></m:f>"
    power = f"<m:sSup><m:e>{fraction}</m:e><m:sup>{run.format('2')}</m:sup></m:sSup>"
    add_paragraph(document, "x =", f"<m:oMath>{power}</m:oMath>")
    (element,) = parse(document, ".docx").elements
    assert element.text == r"x = \frac{a}{b}^{2}"


def test_headers_and_footers_are_left_out_and_properties_are_read(parse: Parse) -> None:
    document = Document()
    document.core_properties.title, document.core_properties.author = "Pump manual", "Ada"
    document.sections[0].header.paragraphs[0].text = "Confidential"
    document.add_paragraph("Body.")
    parsed = parse(document, ".docx")
    assert texts(parsed.elements, "paragraph") == ["Body."]
    assert (parsed.title, parsed.author, parsed.page_count) == ("Pump manual", "Ada", None)


def test_titles_and_authors_that_programs_put_there_are_none(parse: Parse) -> None:
    document = Document()
    document.core_properties.title, document.core_properties.author = "Document1", "python-docx"
    parsed = parse(document, ".docx")
    assert (parsed.title, parsed.author) == (None, None)


def test_the_strict_dialect_is_read(parse: Parse) -> None:
    transitional = rb"http://schemas\.openxmlformats\.org/(officeDocument|wordprocessingml)/2006/"
    strict = rb"http://purl.oclc.org/ooxml/\1/"
    content = changed(docx_of("Body."), lambda _, part: re.sub(transitional, strict, part))
    assert texts(parse(content, ".docx").elements, "paragraph") == ["Body."]


def test_a_macro_file_is_read_without_its_macros(parse: Parse) -> None:
    parsed = parse(docx_with_macros("Body."), ".docm")
    assert texts(parsed.elements, "paragraph") == ["Body."]
    assert parsed.warnings == ("The file contains macros, which were neither run nor read.",)


def test_a_relationship_that_leads_nowhere_costs_nothing_else(parse: Parse) -> None:
    dangling = f'<Relationship Id="rId99" Target="NULL" Type="{OFFICE}/image"/></Relationships>'.encode()
    content = changed(docx_of("Body."), lambda _, part: part.replace(b"</Relationships>", dangling))
    assert texts(parse(content, ".docx").elements, "paragraph") == ["Body."]


def test_damaged_xml_is_refused_with_a_hint(parse: Parse) -> None:
    content = changed(
        docx_of("Body."), lambda name, part: part[:-40] if name == "word/document.xml" else part
    )
    with pytest.raises(BadDocumentError, match="damaged") as refused:
        parse(content, ".docx")
    assert refused.value.hints == ("Open the file in the program that created it, and save it again.",)


@pytest.mark.parametrize("kind", ["footnote", "endnote"])
def test_notes_follow_the_paragraph_that_refers_to_them(parse: Parse, kind: str) -> None:
    document = Document()
    add_paragraph(document, "The fee is capped.", f'<w:r><w:{kind}Reference w:id="2"/></w:r>')
    document.add_paragraph("It is due in May.")
    line = f'<w:{kind} w:type="separator" w:id="0"><w:p><w:r><w:t>no text</w:t></w:r></w:p></w:{kind}>'
    note = f'<w:{kind} w:id="2"><w:p><w:r><w:t>At 90,000 euros.</w:t></w:r></w:p></w:{kind}>'
    notes = Part(
        PackURI(f"/word/{kind}s.xml"),
        f"application/vnd.openxmlformats-officedocument.wordprocessingml.{kind}s+xml",
        f"<w:{kind}s {WORD}>{line}{note}</w:{kind}s>".encode(),
        document.part.package,
    )
    document.part.relate_to(notes, f"{OFFICE}/{kind}s")
    elements = parse(document, ".docx").elements
    note_text = f"{kind.capitalize()} 2: At 90,000 euros."
    assert texts(elements, "paragraph") == ["The fee is capped.", note_text, "It is due in May."]
