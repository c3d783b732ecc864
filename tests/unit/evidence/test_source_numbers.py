"""Tests for the check of numbers in cited statements against the cited documents."""

import random
import re
from datetime import UTC, date, datetime

import pytest

from shared.evidence.citations import CitationBook
from shared.evidence.models import QueriedTable, TableResult, WebPage
from shared.evidence.source_numbers import SourceNumbers, unsourced_numbers, unsourced_statements
from shared.retrieval.models import DocumentRecord, Hit

TODAY = date(2026, 11, 29)
POLICY = (
    "3.3 For flood the excess is GBP 25,000, or GBP 15,000 if flood barriers certified to BS 851188 were "
    "deployed within 4 hours. The premium rose by 3.5 % to 1,234,567 pounds on 14 March 2025."
)


def unsourced(statement: str, source: str = POLICY, language: str = "en") -> list[str]:
    return unsourced_numbers(statement, [SourceNumbers.of([source], language)], language, TODAY)


@pytest.mark.parametrize(
    "statement",
    [
        "The excess is GBP 25,000, or GBP 15,000 with barriers to BS 851188.",
        "The excess is 25000 pounds.",
        "The premium rose by 3.5 percent to about 1.2 million pounds.",
        "The premium is 1.23 million, or 1,235 thousand pounds.",
        "On 14.03.2025 the premium rose; so it did on 2025-03-14 and on 3/14/2025.",
        "1. The barriers must stand within four hours.",
        "| 2 | The excess is 25,000 |",
        "Today, 29 November 2026, the excess is 25,000 pounds.",
        "Section 3.3 has 1 rule and 0 exceptions.",
        "Without a number, nothing is compared; two exceptions are words.",
    ],
)
def test_numbers_of_the_source_are_accepted(statement: str) -> None:
    assert unsourced(statement) == []


@pytest.mark.parametrize(
    ("statement", "numbers"),
    [
        ("The excess is GBP 24,000, or GBP 15,000 with barriers.", ["24,000"]),
        ("Both excesses together are 40,000 pounds; 40,000 is much.", ["40,000"]),
        ("The premium rose by 3.6 % to 1.3 million pounds.", ["3.6 %", "1.3 million"]),
        ("The premium is 1,234,568 pounds.", ["1,234,568"]),
        ("On 17.03.2025 the premium rose, not on 2025-03-16 or 3/14/2023.", ["17", "16", "2023"]),
        ("The barriers must stand within 5 hours.", ["5"]),
        ("1. The barriers must stand within 6 hours.", ["6"]),
    ],
)
def test_other_numbers_are_reported_once_as_written(statement: str, numbers: list[str]) -> None:
    assert unsourced(statement) == numbers


@pytest.mark.parametrize(
    ("statement", "source", "language"),
    [
        ("The price is 2,400.50 euros.", "Der Preis beträgt 2.400,50 EUR.", "en"),
        ("Der Preis beträgt 2.400 EUR.", "The price is EUR 2,400.", "de"),
        ("The price is 2,400 euros.", "Der Preis beträgt 2.400 EUR.", "en"),
        ("Le prix est de 16 500 €.", "The price is 16,500 euros.", "fr"),
        ("The notice period is 3 months.", "Die Frist beträgt drei Monate.", "en"),
        ("The notice period is 3 months.", "Le préavis est de trois mois.", "en"),
        ("Die Frist beträgt 30 Tage.", "Payment is due within thirty days.", "de"),
        ("The share is 34 %.", "| share | 0.34 |", "en"),
        ("Revenue was 1.2 million, or 1.3 million, euros.", "Revenue was 1,250,000 euros.", "en"),
        ("Revenue was 53.7 million euros.", "| Revenue (EUR thousand) | 53,700 |", "en"),
        ("Umsatz: 1,2 Mrd. EUR", "Revenue was 1.2 billion euros.", "de"),
        ("The tag A-200 is on the pump.", "Pump A-200 has a tag.", "en"),
        ("Der Vertrag endet am 28.2.26.", "It ends on 2026-02-28.", "de"),
        ("Es waren 2025 747.590 kWh.", "In 2025: 747,590 kWh", "de"),
    ],
)
def test_numbers_are_recognised_in_other_notations(statement: str, source: str, language: str) -> None:
    assert unsourced(statement, source, language) == []


def test_only_percentages_may_be_stored_as_fractions() -> None:
    assert unsourced("It takes 34.0 hours.", "| hours | 0.34 |") == ["34.0"]


def test_a_source_without_numbers_contains_none() -> None:
    assert unsourced("It weighs 312 kg.", "The weight is stated elsewhere.") == ["312"]


def test_changed_digits_are_found() -> None:
    """Nine in ten of 400 changed digits are reported. The others agree by chance with another number."""
    statement = "The excess is GBP 25,000, or GBP 15,000; the premium of 1,234,567 pounds rose by 3.5 %."
    chance = random.Random(7)
    places = [digit.start() for digit in re.finditer(r"\d", statement)]
    reported_count = 0
    for _ in range(400):
        place = chance.choice(places)
        digit = chance.choice([digit for digit in "123456789" if digit != statement[place]])
        reported_count += bool(unsourced(statement[:place] + digit + statement[place + 1 :]))
    assert reported_count >= 360


MANUAL = Hit(
    block_id="b1",
    doc_id="manual",
    filename="manual-400.pdf",
    page_number=7,
    heading_path="4 Data > 4.2 Pressure",
    content="It runs at 15 bar. It weighs 312 kg.",
)
OFFER = Hit(block_id="b2", doc_id="offer", filename="offer.md", content="The price is 890 euros.")
FIGURE = Hit(
    block_id="b3", doc_id="drawing", filename="drawing.pdf", block_type="image", image_caption="Curve of 50 m"
)
RECORD = DocumentRecord(
    doc_id="manual",
    filename="manual-400.pdf",
    upload_date=datetime(2025, 6, 23, tzinfo=UTC),
    author="Unit 77",
)
PAGE = WebPage(
    final_url="https://example.org/2019",
    title="Prices",
    text="It costs 640 euros.",
    fetched_at=datetime(2025, 6, 23, tzinfo=UTC),
    sha256="",
    content_type="text/html",
)
RESULT = TableResult(
    sql="SELECT 1",
    sql_in_words="",
    columns=("n",),
    rows=((5,),),
    row_count=1,
    tables=(QueriedTable(table_id="t", doc_id="sales", filename="sales.csv", content_hash="h"),),
)


@pytest.fixture
def book() -> CitationBook:
    """Return a book with citations of each kind; number 6 is unproved."""
    book = CitationBook((MANUAL, OFFER, FIGURE), records={"manual": RECORD}, pages=(PAGE,))
    assert book.prove("manual", "It runs at 15 bar.")
    assert book.prove("offer", "The price is 890 euros.")
    assert book.prove("drawing", "Curve of 50 m")
    assert book.prove("manual", "author: Unit 77")
    assert book.prove(PAGE.doc_id, "It costs 640 euros.")
    assert book.hold("offer", "The price is 900 euros.")
    book.compute(RESULT)
    return book


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It runs at 15 bar and weighs 312 kg. [1]", []),
        ("Section 4.2 on page 7 of manual 400, uploaded on 23 June 2025: 15 bar. [1]", []),
        ("Question 3000: 15 bar. [1]", []),
        ("It runs at 16 bar. [1]", [(("16",), (1,))]),
        ("It costs 890 euros. [1]", [(("890",), (1,))]),
        ("It runs at 15 bar and costs 890 euros. [1] [2]", []),
        ("It runs at 15 bar and costs 891 euros. [1] [2]", [(("891",), (1, 2))]),
        ("The author is Unit 78. [4]", [(("78",), (4,))]),
        ("The author is Unit 77. [4]", []),
        ("It costs 640 euros since 2019. [5]", []),
        ("It costs 650 euros. [5]", [(("650",), (5,))]),
        ("The curve shows 60 m. [3]\nIt runs at 17 bar. [1]", [(("17",), (1,))]),
        ("It costs 900 euros. [6]\nIt runs at 18 bar. [1]", [(("18",), (1,))]),
        ("There are 2027. [7]\nIt runs at 19 bar. [1]", [(("19",), (1,))]),
        ("It runs at 15 bar. [1]\nIt runs at 20 bar. [1]", [(("20",), (1,))]),
        ("It runs at 21 bar. [9]", []),
        ("It runs at 22 bar.", []),
    ],
)
def test_statements_are_compared_with_their_documents(
    book: CitationBook, text: str, expected: list[object]
) -> None:
    marked = re.sub(r"\[(\d)\]", r"(Source: a.pdf)[\1]", text)
    assert list(unsourced_statements(marked, book, "What says question 3000?", "en")) == expected
