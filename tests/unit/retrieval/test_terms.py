"""Tests for the terms of file names, titles, texts and questions."""

import pytest

from shared.retrieval.terms import document_name_terms, document_words, question_terms

REPORT = [
    "Acme sold pumps in May. The pumps of Acme are sold by Borealis. Borealis and Acme differ on pumps.",
    "Pumps are the product. However, Acme and Borealis build valves, too.",
]


def test_a_name_is_written_with_a_capital_and_hardly_ever_without() -> None:
    names = document_name_terms("scan.pdf", "", REPORT)
    assert {"acme", "borealis"} <= set(names)
    assert "pumps" not in names


def test_words_of_the_file_name_are_names_unless_the_text_uses_them_as_words() -> None:
    names = document_name_terms("ACME_2018_pumps_10K.pdf", "", REPORT)
    assert {"acme", "2018", "10k"} <= set(names)
    assert "pumps" not in names


@pytest.mark.parametrize(
    ("filename", "terms"),
    [
        ("AMCOR_2023Q4_EARNINGS.pdf", {"amcor", "q4", "2023", "earnings"}),
        ("PerksPlus.pdf", {"perks", "plus"}),
        ("afe620b9beac86c1027b96d31d396407.pdf", set()),
        ("2022 Q3 AAPL.pdf", {"2022", "q3", "aapl"}),
    ],
)
def test_file_names_are_read_as_people_say_them(filename: str, terms: set[str]) -> None:
    assert set(document_name_terms(filename, "", [])) == terms


def test_a_number_counts_only_as_a_name() -> None:
    names = document_name_terms("ACME_2018.pdf", "", REPORT)
    assert {"2018", "pumps"} <= set(document_words(names, [*REPORT, "In 2017 and 2018."]))
    assert "2017" not in document_words(names, ["In 2017 and 2018."])


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("What is Apple's FY2018 revenue?", {"apple", "2018", "revenue"}),
        ("the 10-K of Q22023", {"10k", "q2", "2023"}),
        ("Best Buy in the second quarter of FY'24", {"best", "buy", "bestbuy", "q2"}),
        ("who is it", set()),
    ],
)
def test_questions_are_read_as_file_names_are_written(question: str, terms: set[str]) -> None:
    assert terms <= set(question_terms(question))


def test_an_elided_article_belongs_to_no_name() -> None:
    assert document_name_terms("reglement-piscine-aubier.txt", "", ()) == ("reglement", "piscine", "aubier")
    assert "aubier" in document_name_terms("pv.docx", "Commune d’Aubier", ())
    assert "aubier" in question_terms("la piscine d'Aubier")


@pytest.mark.parametrize("name", ["O'Brien", "rock'n'roll", "ma'am", "don't"])
def test_other_apostrophes_are_no_elision(name: str) -> None:
    assert question_terms(name) == question_terms(name.replace("'", ""))
