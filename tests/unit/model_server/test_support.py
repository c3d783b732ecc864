"""Tests for telling answerable questions from similar unanswerable ones, in both languages."""

import pytest

from local.model_server.embedding.service import EmbeddingService
from tests.unit.model_server.conftest import block, document
from tests.unit.model_server.test_answers import answer

TRAVEL = document(
    "travel",
    block(
        "Employees book train journeys in second class. Flights are allowed from 600 kilometres on. "
        "Hotels are reimbursed up to 140 EUR a night. Receipts are handed in within 30 days of the journey.",
        heading="2 Business travel",
    ),
    block(
        "The office in Lyon opened in 2019 and has 85 desks. Its manager is Claire Fontaine. "
        "Visitors register at the reception and wear a badge.",
        heading="5 Offices",
    ),
    block(
        "Gift cards that were not redeemed amounted to 3.2 million EUR at the end of 2021. "
        "Sales rose by 4 % in that year.",
        heading="7 Figures of the year",
    ),
    filename="handbook.pdf",
    title="Staff handbook",
)
REISEN = document(
    "reisen",
    block(
        "Bahnfahrten werden in der zweiten Klasse gebucht. Flüge sind ab einer Entfernung von 600 Kilometern "
        "erlaubt. Hotels werden bis 140 EUR je Nacht erstattet. Belege sind innerhalb von 30 Tagen "
        "nach der Reise einzureichen.",
        heading="2 Dienstreisen",
    ),
    block(
        "Das Büro in Lyon wurde 2019 eröffnet und hat 85 Arbeitsplätze. Besucher melden sich am Empfang an "
        "und tragen einen Ausweis.",
        heading="5 Büros",
    ),
    filename="handbuch.pdf",
    title="Mitarbeiterhandbuch",
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Up to which amount are hotels reimbursed?", "140 EUR"),
        ("Within how many days must receipts be handed in?", "30 days"),
        ("When did the office in Lyon open?", "2019"),
        ("What amount of gift cards was not redeemed in 2021?", "3.2"),
        ("Bis zu welchem Betrag werden Hotels erstattet?", "140 EUR"),
        ("Ab welcher Entfernung sind Flüge erlaubt?", "600 Kilometer"),
        ("Wann wurde das Büro in Lyon eröffnet?", "2019"),
    ],
)
def test_what_the_passages_say_is_answered(embedder: EmbeddingService, question: str, expected: str) -> None:
    passages = REISEN if question.startswith(("Bis", "Ab", "Wann")) else TRAVEL
    assert expected in answer(embedder, question, "CONTENT_SEARCH", passages)


@pytest.mark.parametrize(
    "question",
    [
        "When did the office in Toronto open?",
        "By how much did sales rise in 2024?",
        "Who painted the ceiling of the Sistine Chapel?",
        "Are electric bicycles leased for staff?",
        "What does the company pay for parental leave?",
        "Wie hoch war der Umsatz im Jahr 2024?",
        "Wer hat die Zauberflöte komponiert?",
        "Wie viele Urlaubstage bekommen Auszubildende?",
    ],
)
def test_what_they_do_not_say_is_declined(embedder: EmbeddingService, question: str) -> None:
    passages = REISEN if question.startswith(("Wie", "Wer")) else TRAVEL
    assert answer(embedder, question, "CONTENT_SEARCH", passages).startswith("<gap ")


def test_the_organisation_s_name_in_every_document_answers_nothing(embedder: EmbeddingService) -> None:
    """Check that the organisation's name, the only words the question and documents share, supports no
    answer.
    """
    papers = [
        document(
            name, block(f"Brackwater Tileworks: {text}", heading=name), filename=f"{name}.pdf", title=title
        )
        for name, text, title in (
            ("report", "Annual Report 2023. Sales rose by 4 %.", "Brackwater Tileworks annual report"),
            (
                "kiln",
                "Kiln manual. The kiln is heated to 1,100 degrees in six hours.",
                "Brackwater Tileworks kiln",
            ),
            ("visit", "Visitors register at the gate and wear a badge.", "Brackwater Tileworks visitors"),
        )
    ]
    question = "How many weeks of paid parental leave does Brackwater Tileworks grant?"
    assert "<gap" in answer(embedder, question, "CONTENT_SEARCH", *papers)
    asked_well = "To how many degrees does Brackwater Tileworks heat its kiln?"
    assert "1,100" in answer(embedder, asked_well, "CONTENT_SEARCH", *papers)


def test_what_every_document_is_about_can_still_be_asked_for(embedder: EmbeddingService) -> None:
    """Check that "operating margin", which occurs in the reports of all companies, can still be asked for."""
    reports = [
        document(
            company.lower(),
            block(
                f"Net sales and operating margin. In the third quarter {company} had net sales of {sales}. "
                "Operating margin declined as freight cost more.",
                heading="Results of the quarter",
            ),
            filename=f"{company}_Q3.pdf",
            title=f"{company} quarterly report",
        )
        for company, sales in (
            ("Alderbrook", "412 million"),
            ("Fenwick", "97 million"),
            ("Corvane", "1,260 million"),
        )
    ]
    question = "Did dearer freight weigh on the operating margin in the third quarter?"
    assert "freight cost more" in answer(embedder, question, "CONTENT_SEARCH", *reports)
