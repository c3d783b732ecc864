"""Tests for verbatim quotations, checked against the pages of generated files."""

import zipfile
from pathlib import Path

import pytest
from fpdf import FPDF

from evals.evaluation.page_layout import PageLayout, PlacedWord
from evals.evaluation.question_set import QuestionSet, SourceFile
from evals.evaluation.quotations import Page, PlainPage, bare, occurs_on
from evals.evaluation.source_text import SourceTexts

PAGE = PlainPage(
    bare(
        "The kite\u2019s tail is two me\u00ad\ntres long \u2013 well-\nmade. Loss: -5 %.\n"
        "Colour Red Blue\nPrice 3 4\ufb01"
    )
)


@pytest.mark.parametrize(
    "quote",
    [
        "The kite's tail is two metres long",
        "tail  is\ntwo metres long - well-made.",
        "tail is two metres long \u2014 wellmade",
        "- The kite\u2019s **tail**",
        "| Colour | Red |\n|---|---|\n| Price | 4fi |",
    ],
)
def test_what_two_honest_readings_differ_in_does_not_count(quote: str) -> None:
    assert occurs_on(quote, PAGE)


@pytest.mark.parametrize(
    "quote",
    [
        "The kite's tail is three metres long",
        "the kite's tail",
        "Loss: 5 %",
        "tail is long",
        "| Colour | Green |",
        "",
        "|---|",
    ],
)
def test_another_wording_is_not_verbatim(quote: str) -> None:
    assert not occurs_on(quote, PAGE)


def pdf(path: Path, *pages: str) -> Path:
    document = FPDF()
    for text in pages:
        document.add_page()
        document.set_font("Helvetica", size=12)
        document.multi_cell(0, 7, text)
    path.write_bytes(bytes(document.output()))
    return path


def texts_of(*sources: SourceFile) -> SourceTexts:
    return SourceTexts(QuestionSet("made-up", sources, ()))


def require_page(page: Page | None) -> Page:
    assert page is not None
    return page


def test_a_pdf_is_read_page_by_page(tmp_path: Path) -> None:
    path = pdf(tmp_path / "kites.pdf", "The tail is two metres long.", "Kites fly in any good wind.", "-")
    page = texts_of(SourceFile("kites.pdf", path)).page
    assert occurs_on("tail is two metres", require_page(page("kites.pdf", 1)))
    assert not occurs_on("tail is two metres", require_page(page("kites.pdf", 2)))
    assert page("kites.pdf", 3) is None  # the page is only a picture, so the result is unknown
    assert page("kites.pdf", 4) is None
    assert page("kites.pdf", None) is None
    assert page("other.pdf", 1) is None


def test_other_formats_are_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>Kites &amp; wings,<b> both</b> of them</p>")
    with zipfile.ZipFile(tmp_path / "b.docx", "w") as archive:
        archive.writestr("word/document.xml", "<w:p><w:t>A tail of </w:t><w:t>two metres length</w:t></w:p>")
    page = texts_of(
        SourceFile("a.html", tmp_path / "a.html"),
        SourceFile("b.docx", tmp_path / "b.docx"),
        SourceFile("c.txt", text="A passage about kites and wings."),
        SourceFile("d.png", tmp_path / "d.png"),
    ).page
    assert occurs_on("Kites & wings, both", require_page(page("a.html", None)))
    assert occurs_on("tail of two metres", require_page(page("b.docx", None)))
    assert occurs_on("about kites", require_page(page("c.txt", 1)))
    assert page("d.png", 1) is None


def test_a_broken_file_cannot_be_read_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"no pdf")
    (tmp_path / "b.docx").write_bytes(b"no archive")
    sources = [SourceFile(name, tmp_path / name) for name in ("a.pdf", "b.docx", "gone.txt")]
    page = texts_of(*sources).page
    assert [page(source.filename, 1) for source in sources] == [None, None, None]


def test_each_part_of_a_quotation_that_leaves_something_out_must_stand_there() -> None:
    page = PlainPage(bare("The pump runs at 15 bar and weighs 40 kg. It is red."))
    assert occurs_on("The pump runs … It is red.", page)
    assert not occurs_on("The pump runs … It is blue.", page)


def placed(*rows: tuple[float, float, str]) -> PageLayout:
    """Return words from (left, baseline, text) with a height of 10 points and 6 points per letter."""
    words = []
    for start, bottom, text in rows:
        left = start
        for word in text.split():
            words.append(PlacedWord(word, left, bottom, left + 6 * len(word), bottom + 10))
            left += 6 * (len(word) + 1)
    return PageLayout(words)


COLUMNS = placed(
    (300, 688, "the right column"),
    (0, 700, "Kites fly in good"),
    (300, 700, "Read on here at"),
    (0, 688, "wind and need a"),
    (0, 676, "tail. Then comes"),
    (0, 640, "Price"),
    (400, 640, "3.50"),
)


@pytest.mark.parametrize(
    "quote",
    [
        "Kites fly in good wind and need a tail.",
        "Then comes Read on here at the right column",  # over to the top of the next column
        "Price 3.50",  # a row, however wide its gap is
        "ead on here",
    ],
)
def test_an_eye_goes_from_a_word_to_its_neighbour(quote: str) -> None:
    assert occurs_on(quote, COLUMNS)


@pytest.mark.parametrize(
    "quote", ["fly in good Read on", "need a the right column", "Then comes the right", "wind Price"]
)
def test_no_eye_leaps_over_a_gap(quote: str) -> None:
    assert not occurs_on(quote, COLUMNS)


def test_lines_of_a_quotation_are_fragments() -> None:
    assert occurs_on("Read on here\nneed a tail", COLUMNS)
    assert not occurs_on("Read on here\nneed no tail", COLUMNS)
