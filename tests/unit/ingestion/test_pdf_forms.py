"""Tests for the values of PDF form fields, which are read as text next to their labels."""

from pathlib import Path

import pytest

from shared.ingestion.parsers.pdf import parse_pdf
from shared.ingestion.parsers.pdf_page import render_page
from tests.unit.ingestion.form_files import FormMaker


@pytest.fixture
def form() -> FormMaker:
    return FormMaker().words("Name of the applicant:", 72, 750)


def lines_of(form: FormMaker, folder: Path) -> list[str]:
    elements = parse_pdf(form.write(folder / "form.pdf")).elements
    return [line for element in elements for line in element.text.splitlines()]


def test_a_value_joins_the_words_before_its_field(form: FormMaker, tmp_path: Path) -> None:
    form.field("form1[0].f1_01[0]", "Hanne Lindqvist", 220, 746)
    assert lines_of(form, tmp_path) == ["Name of the applicant: Hanne Lindqvist"]


def test_ticks_stand_before_their_words_whether_set_or_not(form: FormMaker, tmp_path: Path) -> None:
    form.words("Married", 72, 700).tick("m", 50, 698, ticked=True)
    form.words("Employed", 72, 650).tick("e", 50, 648, ticked=False)
    assert lines_of(form, tmp_path)[1:] == ["[x] Married", "[ ] Employed"]


def test_a_value_with_no_words_beside_it_is_told_by_its_name(form: FormMaker, tmp_path: Path) -> None:
    form.field("page.Family name", "Lindqvist", 72, 600).field("f1_07", "Malmo", 72, 550)
    form.field("f1_08", "1987", 72, 500, more="/TU(Year of birth:)").tick("f1_09", 72, 450, ticked=True)
    assert lines_of(form, tmp_path)[1:] == ["Family name: Lindqvist", "Malmo", "Year of birth: 1987"]


def test_a_note_typed_onto_the_page_stands_where_it_was_typed(form: FormMaker, tmp_path: Path) -> None:
    form.words("Signed in Malmo.", 72, 400).note("Approved by the board", 72, 600)
    assert lines_of(form, tmp_path) == ["Name of the applicant:", "Approved by the board", "Signed in Malmo."]


def test_what_no_reader_sees_is_not_read(form: FormMaker, tmp_path: Path) -> None:
    form.field("hidden", "secret", 72, 600, more="/F 2").field("password", "secret", 72, 550, more="/Ff 8192")
    assert lines_of(form, tmp_path) == ["Name of the applicant:"]


def test_the_picture_of_a_page_holds_the_words_that_were_filled_in(form: FormMaker, tmp_path: Path) -> None:
    form.field("name", "Hanne Lindqvist", 220, 746)
    path = form.write(tmp_path / "form.pdf")
    words = [word.text for word in render_page(path, 1, tmp_path / "page.png").words]
    assert words[-2:] == ["Hanne", "Lindqvist"]
