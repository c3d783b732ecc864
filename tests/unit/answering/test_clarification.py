"""Tests for the question that asks which document is meant, and its options."""

from shared.answering.clarification import clarifying_question, options_of
from tests.fakes.records import named_record

REPORTS = (
    named_record("annual-report-2023.pdf", "Annual report 2023"),
    named_record("annual-report-2024.pdf", "Annual report 2024"),
)


def test_options_are_numbered_and_named() -> None:
    option = options_of(REPORTS)[1]
    assert (option.number, option.title, option.filename, option.date) == (
        2,
        "Annual report 2024",
        "annual-report-2024.pdf",
        "2026-01-01",
    )


def test_options_show_in_what_their_documents_differ() -> None:
    same = {"title": "Travel policy", "language": "en"}
    records = (
        named_record("travel.pdf", department="Sales", author="A. Kern", project_id="x", **same),
        named_record(
            "travel.pdf", "Travel policy", "draft", department="Works", author="B. Roth", language="en"
        ),
        named_record("travel.pdf", "Travel policy", "draft", department="Works", language="en"),
    )
    assert [option.details for option in options_of(records)] == [
        ("Sales", "report", "A. Kern"),
        ("Works", "draft", "B. Roth"),
        ("Works", "draft"),
    ]
    assert options_of(records)[1].name == "Travel policy (travel.pdf, Works, draft, B. Roth, 2026-01-01)"
    assert [option.details for option in options_of(REPORTS)] == [(), ()]


def test_a_german_question_is_asked_back_in_german() -> None:
    assert "Welches" in clarifying_question("de", "Bericht", 2)
    assert "Which" in clarifying_question("fr", "rapport", 2)
