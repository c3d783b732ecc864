"""Tests for references to documents: which are meant, which are unclear, and which are missing."""

from datetime import UTC, datetime

import pytest

from shared.answering.document_references import (
    MAX_NAMED,
    MAX_OPTIONS,
    Resolution,
    missing_documents,
    not_in_evidence,
    resolve_references,
)
from shared.retrieval.models import Hit
from shared.runs.evidence import Evidence, MissingDocument
from shared.runs.plan import QueryType
from tests.fakes.records import named_record

RECORDS = (
    named_record("annual-report-2023.pdf", "Annual report 2023"),
    named_record("annual-report-2024.pdf", "Annual report 2024"),
    named_record("heron-manual.pdf", "Heron 400: operating manual", "manual"),
    named_record("kestrel-manual.pdf", "Kestrel 120: operating manual", "manual"),
    named_record("wartungsbericht-nord.pdf", "Wartungsbericht Nord", "bericht"),
    named_record("wartungsbericht-sued.pdf", "Wartungsbericht Süd", "bericht"),
    named_record("minutes-safety.txt", "Minutes of the safety committee", "minutes"),
    named_record("minutes-works.txt", "Minutes of the works council", "minutes"),
)


def resolve(question: str, *references: str, query_type: QueryType = "CONTENT_SEARCH") -> Resolution:
    return resolve_references(question, query_type, dict.fromkeys(references, RECORDS))


@pytest.mark.parametrize(
    ("question", "reference"),
    [
        ("What was the revenue in the annual report?", "annual report"),
        ("Summarise the operating manual", "operating manual"),
        ("What does our annual report say about safety?", "annual report"),
        ("Was steht im Wartungsbericht zu Filtern?", "Wartungsbericht"),
        ("What was decided according to the minutes?", "minutes"),
        ("Was ist das Ergebnis des Wartungsberichts?", "Wartungsberichts"),
        ("Is there a pump in the annual report?", "annual report"),
        ("What does the annual reprot say?", "annual reprot"),
        ("Was steht im Wartungsberihct?", "Wartungsberihct"),
    ],
)
def test_one_of_several_is_meant_and_nothing_tells_which(question: str, reference: str) -> None:
    resolution = resolve(question, reference)
    assert resolution.reference == reference
    assert len(resolution.candidates) == 2
    assert resolution.documents == ()


@pytest.mark.parametrize(
    ("question", "reference"),
    [
        ("What do all annual reports say?", "annual reports"),
        ("What do the annual reports say?", "annual reports"),
        ("What do both of the annual report files say?", "annual report"),
        ("Which annual report speaks of safety?", "annual report"),
        ("Is there an annual report on safety?", "annual report"),
        ("Is there an anual reprot on safety?", "anual reprot"),
        ("What do the anual reports say?", "anual reports"),
        ("Was steht in den Wartungsberichten?", "Wartungsberichten"),
        ("Was sagen die Wartungsberichte?", "Wartungsberichte"),
        ("Was steht in jedem Wartungsbericht?", "Wartungsbericht"),
        ("Was the revenue of 2023 and 2024 in the annual report?", "annual report"),
    ],
)
def test_a_reference_that_means_several_is_not_asked_about(question: str, reference: str) -> None:
    resolution = resolve(question, reference)
    assert resolution.candidates == ()
    assert len(resolution.documents) == 2


@pytest.mark.parametrize(
    ("question", "reference", "filename"),
    [
        ("What was the revenue of 2024 in the annual report?", "annual report", "annual-report-2024.pdf"),
        ("What does the operating manual say of the Heron?", "operating manual", "heron-manual.pdf"),
        ("What does annual-report-2023.pdf say?", "annual-report-2023.pdf", "annual-report-2023.pdf"),
        ("Was steht im Wartungsbericht zum Standort Süd?", "Wartungsbericht", "wartungsbericht-sued.pdf"),
    ],
)
def test_the_rest_of_the_question_tells_which_is_meant(question: str, reference: str, filename: str) -> None:
    resolution = resolve(question, reference)
    assert resolution.candidates == ()
    assert [document.filename for document in resolution.documents] == [filename]


@pytest.mark.parametrize("query_type", ["LISTING", "COMPARISON"])
def test_listings_and_comparisons_take_all_that_fit(query_type: QueryType) -> None:
    resolution = resolve("the annual report", "annual report", query_type=query_type)
    assert (resolution.candidates, len(resolution.documents)) == ((), 2)


def test_the_document_of_the_turn_before_is_still_meant() -> None:
    candidates = {"annual report": RECORDS}
    resolution = resolve_references(
        "Who wrote the annual report?", "METADATA_SEARCH", candidates, ["annual-report-2023.pdf"]
    )
    assert [record.filename for record in resolution.documents] == ["annual-report-2023.pdf"]


def test_words_that_were_left_out_are_no_name() -> None:
    resolution = resolve("What does the annual safety audit report say?", "annual safety report")
    assert resolution.candidates == ()


def test_copies_of_one_file_are_no_choice() -> None:
    copies = [named_record(f"{place}/plan.pdf", "Fire plan", "plan", content_hash="same") for place in "ab"]
    resolution = resolve_references("What does the fire plan say?", "CONTENT_SEARCH", {"fire plan": copies})
    assert (resolution.candidates, len(resolution.documents)) == ((), 2)


def test_a_name_that_fits_too_many_is_neither_asked_about_nor_narrowed_to() -> None:
    many = [
        named_record(f"audit-{number}.pdf", f"Audit report {number}") for number in range(MAX_OPTIONS + 1)
    ]
    resolution = resolve_references(
        "What does the audit report say?", "CONTENT_SEARCH", {"audit report": many}
    )
    assert (resolution.candidates, resolution.documents) == ((), ())
    plural = resolve_references(
        "What do the audit reports say?", "CONTENT_SEARCH", {"audit reports": many[: MAX_NAMED + 1]}
    )
    assert plural.documents == ()


def test_a_clear_name_beside_an_unclear_one_is_kept() -> None:
    resolution = resolve("Does the annual report fit the Heron manual?", "annual report", "Heron manual")
    assert resolution.reference == "annual report"
    assert [document.filename for document in resolution.documents] == ["heron-manual.pdf"]


@pytest.mark.parametrize(
    ("reference", "is_missing"),
    [
        ("travel rules", False),  # in a heading of the passage
        ("expenses handbook", False),  # the title of the passage's document
        ("travel rules 2031", True),
        ("travel-rules.pdf", True),
    ],
)
def test_a_document_that_the_search_has_found_is_not_missing(reference: str, is_missing: bool) -> None:
    block = Hit(
        block_id="h-1", doc_id="h.pdf", filename="h.pdf", heading_path="Rules for travel", content="x"
    )
    evidence = Evidence(hits=(block,), records=(named_record("h.pdf", "Handbook of expenses"),))
    missing = (MissingDocument(reference=reference),)
    assert not_in_evidence(missing, evidence) == (missing if is_missing else ())


def test_a_heading_about_another_year_is_not_the_report_of_that_year() -> None:
    report = named_record("annual-report-2023.pdf", "Annual report 2023")
    missing = missing_documents({"annual report 2022": [report]})
    block = Hit(
        block_id="a-1",
        doc_id=report.doc_id,
        filename=report.filename,
        heading_path="Development since 2022",
        content="x",
    )
    assert not_in_evidence(missing, Evidence(hits=(block,), records=(report,))) == missing != ()


@pytest.mark.parametrize(
    ("reference", "is_missing"),
    [
        ("contratto con Termoclima", False),
        ("Vertrag mit Termoclima", False),  # the kind in another language
        ("contract with Termoclima of 2025", True),
        ("Vertrag mit Kaltwind", True),
        ("Vertrag", True),
    ],
)
def test_a_found_document_that_its_first_block_names_is_not_missing(reference: str, is_missing: bool) -> None:
    document = named_record("manutenzione-044.pdf", "Manutenzione 2026/044", "contract")
    block = Hit(
        block_id="m-0",
        doc_id=document.doc_id,
        filename=document.filename,
        content="Contratto tra Termoclima S.r.l. e Varder Italia",
    )
    evidence = Evidence(hits=(block,), records=(document,))
    assert bool(not_in_evidence((MissingDocument(reference=reference),), evidence)) == is_missing


@pytest.mark.parametrize(
    ("reference", "is_missing"),
    [("Priya's e-mail of 11 June", False), ("Priya's e-mail of 12 June", True), ("Ravi's e-mail", True)],
)
def test_a_found_document_of_this_author_and_date_is_not_missing(reference: str, is_missing: bool) -> None:
    date = datetime(2026, 6, 11, 12, tzinfo=UTC)
    mail = named_record(
        "re-offer-packaging-line.eml", "RE: Offer", "e-mail", author="Priya Nair", document_date=date
    )
    missing = (MissingDocument(reference=reference),)
    assert bool(not_in_evidence(missing, Evidence(records=(mail,)))) == is_missing
