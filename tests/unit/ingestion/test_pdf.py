"""Tests for the PDF parser with generated pages."""

from pathlib import Path

import pytest

from shared.documents.models import Element
from shared.ingestion.parsers.pdf import parse_pdf
from shared.platform.errors import BadDocumentError
from tests.unit.ingestion.pdf_files import PdfMaker

PROSE = (
    "The pump moves water from the basin to the tank. It runs by itself once the level is low, and it stops "
    "when the tank is full. A trained person checks it every year and writes the result into the log."
)


def of_kind(elements: tuple[Element, ...], kind: str) -> list[str]:
    return [element.text for element in elements if element.kind == kind]


def test_wrapped_lines_of_a_paragraph_become_one_text(tmp_path: Path) -> None:
    document = parse_pdf(PdfMaker().page().paragraph(PROSE).write(tmp_path / "a.pdf"))
    assert [element.text for element in document.elements] == [PROSE]
    assert document.page_count == 1


def test_larger_lines_are_headings_by_size(tmp_path: Path) -> None:
    maker = PdfMaker().page().heading("Pump manual", 20).paragraph(PROSE)
    maker.heading("Safety", 14).paragraph(PROSE)
    elements = parse_pdf(maker.write(tmp_path / "a.pdf")).elements
    headings = [(e.text, e.level) for e in elements if e.kind == "heading"]
    assert headings == [("Pump manual", 1), ("Safety", 2)]


def test_a_short_bold_line_alone_is_a_heading_and_a_bold_word_in_a_sentence_is_none(tmp_path: Path) -> None:
    maker = PdfMaker().page().paragraph(PROSE).heading("Daily care", 10).paragraph(PROSE)
    maker.pdf.write(5, "")
    maker.pdf.set_font("Helvetica", "B", 10)
    maker.pdf.write(5, "Warning ")
    maker.pdf.set_font("Helvetica", "", 10)
    maker.pdf.write(5, "of hot oil")
    elements = parse_pdf(maker.write(tmp_path / "a.pdf")).elements
    assert of_kind(elements, "heading") == ["Daily care"]


@pytest.mark.parametrize(
    ("title", "size", "below", "headings"),
    [
        ("Annual report of the group and of all its subsidiaries", 14, "for 2024", 1),
        ("Disclosures", 10, "i) Related parties and what was agreed with them as required", 1),
        ("Photo credits", 10, "cover and title page: the harbour by night, seen from the north", 1),
        (
            "Impairment review for assets that are held for sale or",
            10,
            "lease out, when events require it",
            0,
        ),
    ],
)
def test_a_title_above_a_line_in_lower_case_is_a_heading_unless_the_line_continues_it(
    tmp_path: Path, title: str, size: float, below: str, headings: int
) -> None:
    maker = PdfMaker().page().paragraph(PROSE)
    for y, style, points, text in ((100, "B", size, title), (105, "", 10, below)):
        maker.pdf.set_font("Helvetica", style, points)
        maker.pdf.text(10, y, text)
    elements = parse_pdf(maker.write(tmp_path / "a.pdf")).elements
    assert of_kind(elements, "heading") == [title][:headings]


def test_bookmarks_make_headings_of_lines_that_look_like_text(tmp_path: Path) -> None:
    maker = PdfMaker().page()
    maker.pdf.start_section("Scope of this paper", level=0)
    maker.paragraph("Scope of this paper").paragraph(PROSE)
    (first, second) = parse_pdf(maker.write(tmp_path / "a.pdf")).elements
    assert (first.kind, first.level, first.text) == ("heading", 1, "Scope of this paper")
    assert second.kind == "paragraph"


def test_a_row_of_a_table_stays_on_one_line(tmp_path: Path) -> None:
    rows = (("Type", "Pressure", "Price"), ("P-100", "16 bar", "1,200"), ("P-200", "25 bar", "1,900"))
    elements = parse_pdf(PdfMaker().page().paragraph(PROSE).rows(*rows).write(tmp_path / "a.pdf")).elements
    lines = "\n".join(element.text for element in elements).splitlines()
    assert "P-100 16 bar 1,200" in lines
    assert "P-200 25 bar 1,900" in lines


def test_list_items_are_kept_apart(tmp_path: Path) -> None:
    maker = (
        PdfMaker().page().paragraph("Before the start:\n- open the valve\n- close the drain\n1. press start")
    )
    assert of_kind(parse_pdf(maker.write(tmp_path / "a.pdf")).elements, "list_item") == [
        "- open the valve",
        "- close the drain",
        "1. press start",
    ]


def test_a_chapters_header_close_to_the_text_comes_once_and_roman_numbers_never(tmp_path: Path) -> None:
    maker = PdfMaker()
    for number in range(1, 13):
        maker.page()
        chapter = "Part one" if number <= 6 else "Part two"
        maker.pdf.set_font("Helvetica", "", 10)
        maker.pdf.set_y(8)
        maker.pdf.cell(0, 5, f"{chapter}  Annual report", new_x="LMARGIN", new_y="NEXT")
        maker.paragraph(f"The text of page {number} begins right below. " + f"{PROSE} " * 6)
        maker.footer(("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")[number - 1])
    text = "\n".join(element.text for element in parse_pdf(maker.write(tmp_path / "a.pdf")).elements)
    assert (text.count("Part one"), text.count("Part two")) == (1, 1)
    assert text.count("The text of page") == 12
    assert not {"i", "iii", "viii", "xii"} & set(text.split())


def test_running_headers_come_once_and_page_numbers_never(tmp_path: Path) -> None:
    maker = PdfMaker()
    for number in range(1, 7):
        maker.page().paragraph("Groundwork pump manual, edition 4").paragraph(f"{PROSE} Part {number}.")
        maker.footer(f"Page {number} of 6")
    texts = [element.text for element in parse_pdf(maker.write(tmp_path / "a.pdf")).elements]
    assert sum("edition 4" in text for text in texts) == 1
    assert not any("of 6" in text for text in texts)
    assert sum("Part" in text for text in texts) == 6


def test_pages_of_pictures_are_named(tmp_path: Path) -> None:
    maker = PdfMaker().page().paragraph(PROSE)
    for _ in range(2):
        maker.page()
        maker.pdf.rect(20, 20, 100, 100, style="F")
    document = parse_pdf(maker.write(tmp_path / "a.pdf"))
    (warning,) = document.warnings
    assert warning.startswith("Pages 2-3 hold no text (scanned?) and cannot be searched.")


def test_title_and_author_come_from_the_file_unless_a_program_made_them_up(tmp_path: Path) -> None:
    maker = PdfMaker().page().paragraph(PROSE)
    maker.pdf.set_title("Pump manual")
    maker.pdf.set_author("Ada")
    document = parse_pdf(maker.write(tmp_path / "a.pdf"))
    assert (document.title, document.author) == ("Pump manual", "Ada")
    other = PdfMaker().page().paragraph(PROSE)
    other.pdf.set_title("Microsoft Word - draft7.docx")
    assert parse_pdf(other.write(tmp_path / "b.pdf")).title is None


def test_an_encrypted_file_says_what_to_do(tmp_path: Path) -> None:
    maker = PdfMaker().page().paragraph(PROSE)
    maker.pdf.set_encryption(owner_password="owner", user_password="user")
    with pytest.raises(BadDocumentError, match="encrypted") as refused:
        parse_pdf(maker.write(tmp_path / "a.pdf"))
    assert refused.value.hints == ("Remove the password and upload the file again.",)


def test_half_a_file_is_damaged_and_a_lost_tail_is_read(tmp_path: Path) -> None:
    maker = PdfMaker()
    for number in range(20):
        maker.page().paragraph(f"{PROSE} Part {number}.")
    content = maker.write(tmp_path / "a.pdf").read_bytes()
    (tmp_path / "tail.pdf").write_bytes(content[:-20])
    assert parse_pdf(tmp_path / "tail.pdf").page_count == 20
    (tmp_path / "stub.pdf").write_bytes(content[:200])
    with pytest.raises(BadDocumentError, match="damaged"):
        parse_pdf(tmp_path / "stub.pdf")


def test_a_large_number_before_a_step_makes_it_no_heading_and_does_not_part_its_lines(tmp_path: Path) -> None:
    maker = PdfMaker().page().paragraph(PROSE).paragraph(PROSE)
    maker.pdf.set_font("Helvetica", "B", 14)
    maker.pdf.write(5, "1 ")
    maker.pdf.set_font("Helvetica", "", 10)
    maker.pdf.write(5, PROSE)
    elements = parse_pdf(maker.write(tmp_path / "a.pdf")).elements
    assert of_kind(elements, "heading") == []
    assert elements[-1].text == f"1 {PROSE}"


def test_a_page_of_a_few_words_is_no_scan(tmp_path: Path) -> None:
    document = parse_pdf(PdfMaker().page().paragraph("Here it is.").write(tmp_path / "short.pdf"))
    assert [element.text for element in document.elements] == ["Here it is."]
    assert document.warnings == ()


def test_a_page_number_close_to_the_text_and_a_court_s_header_are_left_out(tmp_path: Path) -> None:
    maker = PdfMaker()
    for number in range(1, 9):
        maker.page()
        maker.pdf.set_font("Helvetica", "", 10)
        left, right = (
            (f"{number} Opinion of the Court", "21-13199") if number % 2 else ("21-13199", "Opinion")
        )
        maker.pdf.text(20, 12, f"Case 21-13199 Filed 5 January, page {number} of 8")
        maker.pdf.text(20, 18, f"{left} {right}" if number % 2 else f"{left} {right} of the Court {number}")
        maker.pdf.set_y(30)
        maker.paragraph(f"{PROSE} " * number)
        maker.pdf.text(100, maker.pdf.get_y() - 1, str(number + 40))
    text = "\n".join(element.text for element in parse_pdf(maker.write(tmp_path / "a.pdf")).elements)
    assert (text.count("Opinion of the Court"), text.count("Filed")) == (2, 1)
    assert not any(str(number + 40) in text for number in range(1, 9))
