"""What documents are called, and what a question calls them."""

import pytest

from local.search_server.lucene_syntax import parse_lucene
from local.search_server.query_nodes import Group, Occur
from shared.retrieval.keyword_query import document_names, document_words, name_query, question_terms

REPORT = [
    "Acme sold pumps in May. The pumps of Acme are sold by Borealis. Borealis and Acme differ on pumps.",
    "Pumps are the product. However, Acme and Borealis build valves, too.",
]


def test_a_name_is_written_with_a_capital_and_hardly_ever_without() -> None:
    names = document_names("scan.pdf", "", REPORT)
    assert {"acme", "borealis"} <= set(names)
    assert "pumps" not in names


def test_words_of_the_file_name_are_names_unless_the_text_uses_them_as_words() -> None:
    names = document_names("ACME_2018_pumps_10K.pdf", "", REPORT)
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
    assert set(document_names(filename, "", [])) == terms


def test_a_number_counts_only_as_a_name() -> None:
    names = document_names("ACME_2018.pdf", "", REPORT)
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


def test_the_query_chooses_by_name_and_scores_by_rarity() -> None:
    assert name_query("Apple?") == "(+names:apple^0.001 +words:apple)"
    assert name_query("what is it") is None


@pytest.mark.parametrize("question", ['a"b (c] d:e', "names:x OR words:*", "Müller ~ 2^3 \\", "报告 2023?"])
def test_no_question_becomes_an_operator(question: str) -> None:
    query = name_query(question)
    assert query is not None
    node = parse_lucene(query, Occur.SHOULD)
    assert isinstance(node, Group)
    assert query.count("(") == len(question_terms(question))
