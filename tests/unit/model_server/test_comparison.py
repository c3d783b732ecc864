"""Comparisons: a cell for every document that is meant, aspects one by one, notes of sub-agents heeded."""

import re
from html import unescape

from local.model_server.answers.compose import answer_from_documents
from local.model_server.answers.material import read_material
from local.model_server.embedding.service import EmbeddingService
from tests.unit.model_server.conftest import block, document, prompt

CITE = re.compile(r'<cite doc_id="([^"]*)" quote="([^"]*)"/>')
QUARTERS = {
    "q1": "Harbour fees brought in 4.1 million euros. The crane was repaired in March.",
    "q2": "In the second quarter the income from harbour fees was 4.9 million euros. It rained a lot.",
    "q3": "The canteen was closed. Of all income, 5.2 million euros came from fees of the harbour.",
    "q4": "A new pilot boat was bought. Fees that ships pay in the harbour fell to 3.8 million euros.",
}


def quarters() -> list[str]:
    return [
        document(doc_id, block(text), title=f"Port report {doc_id}", filename=f"port-{doc_id}.pdf")
        for doc_id, text in QUARTERS.items()
    ]


def answer(
    embedder: EmbeddingService, question: str, *documents: str, kind: str = "COMPARISON", findings: str = ""
) -> str:
    message = prompt(question, kind, *documents) + findings
    return answer_from_documents(read_material(message, embedder))


def cited(text: str) -> dict[str, str]:
    """The first quotation of each document."""
    found = [(doc_id, unescape(quote)) for doc_id, quote in CITE.findall(text)]
    return dict(reversed(found))


def test_every_document_has_a_cited_cell_in_the_first_row(embedder: EmbeddingService) -> None:
    given = answer(embedder, "How have the harbour fees changed over the reported quarters?", *quarters())
    first_row = given.splitlines()[4]
    assert set(cited(first_row)) == set(QUARTERS)
    assert all("million euros" in quote for quote in cited(first_row).values())


def test_each_aspect_has_its_row_and_one_that_nobody_speaks_of_has_none(embedder: EmbeddingService) -> None:
    one, other = (
        document(name, block(f"The press weighs {weight} kg. Its maximum pressure is {bar} bar."), title=name)
        for name, weight, bar in (("Atlas", 900, 250), ("Borea", 700, 230))
    )
    given = answer(embedder, "Compare the pressure, the weight and the paint of both presses", one, other)
    rows = [line.split("|")[1].strip() for line in given.splitlines() if line.startswith("|")][2:]
    assert rows[:2] == ["The pressure", "The weight"]
    assert not any("paint" in row for row in rows)


def test_the_year_of_a_document_does_not_choose_its_sentence(embedder: EmbeddingService) -> None:
    old, new = (
        document(
            year,
            block(
                f"Annual report {year}. Revenue in {year} was {now} million euros. Table 1: Revenue {year}."
            ),
            block(f"For {int(year) + 1} we expect revenue of {then} million euros."),
            title="Annual report",
            filename=f"annual-report-{year}.pdf",
        )
        for year, now, then in (("2023", "48.2", "52"), ("2024", "53.7", "57"))
    )
    question = "Compare the revenue in the annual report 2023 and the annual report 2024."
    given = answer(embedder, question, old, new)
    assert cited(given.splitlines()[4]) == {
        "2023": "Revenue in 2023 was 48.2 million euros.",
        "2024": "Revenue in 2024 was 53.7 million euros.",
    }
    assert "Table 1" not in given
    assert "| Annual report 2023. " not in given


def test_what_sub_agents_set_against_each_other_heads_the_table(embedder: EmbeddingService) -> None:
    findings = (
        '<findings><finding kind="difference" about="Cost of repairs"><statement>They differ.</statement>'
        '<proof doc_id="q1">The crane was repaired in March.</proof>'
        '<proof doc_id="q4">A new pilot boat was bought.</proof>'
        '<proof doc_id="q2">This stands nowhere.</proof></finding></findings>'
    )
    given = answer(
        embedder, "Compare the harbour fees of the quarters", *quarters(), findings=findings
    ).splitlines()[4]
    assert given.startswith("| Cost of repairs |")
    assert cited(given) == {"q1": "The crane was repaired in March.", "q4": "A new pilot boat was bought."}


def test_a_question_about_several_documents_cites_each_of_them(embedder: EmbeddingService) -> None:
    question = "Which income from harbour fees do these reports state?"
    given = answer(embedder, question, *quarters(), kind="CONTENT_SEARCH")
    assert set(cited(given)) == set(QUARTERS)
    assert "**In the other documents:**" in given
    single = answer(embedder, "What was the income from harbour fees?", *quarters(), kind="CONTENT_SEARCH")
    assert len(cited(single)) < len(QUARTERS)
