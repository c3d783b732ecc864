"""Tests for metadata derived without a model and for corrections by users."""

from datetime import UTC, date, datetime

import pytest

from shared.documents.corrections import stored_date, with_corrections
from shared.documents.models import DescribedFile
from shared.documents.requests import MetadataCorrection
from shared.ingestion.changes import corrections_of
from shared.ingestion.metadata import (
    describe_by_rule,
    guess_language,
    under_another_name,
    with_language_code,
)
from shared.retrieval.models import DocumentRecord

OPENING = "The pump moves water from the basin. It is checked every year by a trained person. " * 60


@pytest.mark.parametrize(
    ("own_title", "heading", "expected"),
    [("Own", "Heading", "Own"), (None, "Heading", "Heading"), (None, None, "pump manual 2024")],
)
def test_the_title_is_the_best_that_there_is(
    own_title: str | None, heading: str | None, expected: str
) -> None:
    assert describe_by_rule("pump_manual_2024.pdf", own_title, heading, OPENING).title == expected


def test_summaries_are_the_first_sentences_and_bounded() -> None:
    described = describe_by_rule("a.txt", None, None, OPENING)
    assert described.summary_brief == OPENING[: len(described.summary_brief)]
    assert len(described.summary_brief) < len(described.summary_standard) <= 1502
    assert describe_by_rule("a.txt", None, None, "").summary_brief == ""


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (OPENING, "en"),
        ("Die Pumpe fördert das Wasser und wird nicht ohne Aufsicht betrieben.", "de"),
        ("La pompe est contrôlée par une personne formée, et les résultats sont notés.", "fr"),
        ("1 2 3", "und"),
        ("| Bond | Par | Coupon |\n| --- | --- | --- |\n| Plus Energy | 100 | 4.5 |", "und"),
        (f"| Country | Sales |\n{'| Germany | 5 |' * 90}\n| La Paz | 3 |\n| Les Ulis | 4 |", "und"),
    ],
)
def test_the_language_is_guessed_by_its_small_words(text: str, language: str) -> None:
    assert guess_language(text) == language


def record(title: str, **fields: str) -> DocumentRecord:
    at = datetime(2024, 1, 1, tzinfo=UTC)
    return DocumentRecord(doc_id="d", filename="a.pdf", upload_date=at, title=title, **fields)


def test_corrected_fields_survive_and_others_are_new() -> None:
    after = with_corrections(record("Extracted", author="New"), {"title": "Corrected", "tags": ("a",)})
    assert (after.title, after.author, after.tags) == ("Corrected", "New", ("a",))
    assert after.edited_fields == ("tags", "title")


def test_a_field_that_was_emptied_stays_empty() -> None:
    after = with_corrections(record("Extracted", author="Wrong"), {"author": None})
    assert (after.author, after.edited_fields) == (None, ("author",))


def test_fields_that_nobody_may_edit_are_never_carried_over() -> None:
    after = with_corrections(record("x", owner_id="u1"), {"owner_id": "intruder"})
    assert (after.owner_id, after.edited_fields) == ("u1", ())


@pytest.mark.parametrize(
    ("model_language", "language"),
    [("en", "en"), ("EN-us", "en"), (" de_AT ", "de"), ("und", "und"), ("English", "en"), ("", "en")],
)
def test_a_language_is_a_code_and_guessed_where_the_model_says_no_code(
    model_language: str, language: str
) -> None:
    described = describe_by_rule("a.txt", None, None, OPENING).model_copy(update={"language": model_language})
    assert with_language_code(described, OPENING).language == language


@pytest.mark.parametrize(
    ("title", "opening", "expected"),
    [
        ("pump manual", OPENING, "guide 2"),
        ("Pump Manual", OPENING, "guide 2"),
        ("pump_manual.pdf", OPENING, "guide 2"),
        ("Pump manual", "PUMP MANUAL\nThe pump moves water.", "Pump manual"),
        ("How to run a pump", OPENING, "How to run a pump"),
    ],
)
def test_a_title_that_was_the_files_name_is_that_of_the_new_name(
    title: str, opening: str, expected: str
) -> None:
    metadata = describe_by_rule("a.txt", title, None, opening)
    described = DescribedFile(**metadata.model_dump(), described_as="pump_manual.pdf")
    assert under_another_name(described, "guide_2.pdf", opening).title == expected


@pytest.mark.parametrize(
    ("date_text", "instant"),
    [
        ("2024-05-17", datetime(2024, 5, 17, 12, tzinfo=UTC)),
        ("2024-05", datetime(2024, 5, 1, 6, tzinfo=UTC)),
        (" 2024 ", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-13", None),
        ("May 2024", None),
        ("0000", None),
        (None, None),
    ],
)
def test_a_stored_date_keeps_its_precision(date_text: str | None, instant: datetime | None) -> None:
    assert stored_date(date_text) == instant


def test_a_corrected_date_survives() -> None:
    corrections = corrections_of(MetadataCorrection(document_date=date(2023, 6, 30)))
    assert with_corrections(record("Extracted"), corrections).document_date == datetime(
        2023, 6, 30, 12, tzinfo=UTC
    )
    emptied = corrections_of(MetadataCorrection(document_date=None))
    assert with_corrections(record("Extracted"), emptied).document_date is None


def test_boilerplate_is_no_summary() -> None:
    opening = (
        "# FORM 10-K\n\nIndicate by check mark whether the registrant is a shell company. "
        "The company makes tapes and filters. It employs 90,000 people."
    )
    described = describe_by_rule("a.pdf", None, None, opening)
    assert described.summary_brief == "The company makes tapes and filters. It employs 90,000 people."
