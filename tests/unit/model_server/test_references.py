"""Documents that questions name. None of these sentences stands in evals/clarification."""

import pytest

from local.model_server.schemas.references import find_references


@pytest.mark.parametrize(
    ("question", "references"),
    [
        ("Is smoking allowed according to the house rules of conduct?", ["house rules of conduct"]),
        ("Who signed the minutes of the harbour board?", ["minutes of the harbour board"]),
        ("What does our evacuation concept require?", ["evacuation concept"]),
        ("Wer haftet laut Pachtvertrag?", ["Pachtvertrag"]),
        ("Was verlangt unser Brandschutzkonzept?", ["Brandschutzkonzept"]),
        ("Welche Frist nennt das Service Agreement?", ["Service Agreement"]),
        ("Who is thanked in the Geschäftsbericht 2019?", ["Geschäftsbericht 2019"]),
        (
            "Vergleiche die Geschäftsberichte 2018 und 2019",
            ["Geschäftsberichte 2018", "Geschäftsberichte 2019"],
        ),
        ("How do I write a report?", []),
        ("Gibt es einen Vertrag?", []),
        ("What was planned for the harbour?", []),
    ],
)
def test_names_end_where_the_question_goes_on(question: str, references: list[str]) -> None:
    assert find_references(question) == references


@pytest.mark.parametrize(
    ("question", "references"),
    [
        ("What does the ferry polciy say on bikes?", ["ferry polciy"]),
        ("Wer haftet laut Pachtvetrag?", ["Pachtvetrag"]),
        ("whats in the ferry handbok?", ["ferry handbok"]),
    ],
)
def test_a_misspelt_name_is_given_as_it_was_asked(question: str, references: list[str]) -> None:
    assert find_references(question) == references
