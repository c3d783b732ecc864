"""Tests for converting questions to keyword queries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.search_server.query_syntax import (
    Boost,
    Group,
    Phrase,
    QueryNode,
    Words,
    parse_lucene,
    parse_simple,
)
from shared.retrieval.keyword_query import (
    all_words_query,
    any_word_query,
    keyword_query,
    name_query,
    question_query,
)
from shared.retrieval.terms import question_terms


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("relief valve of the R-134a circuit", "relief valve of the R-134a circuit"),
        ("pressure -12 bar", "pressure \\-12 bar"),
        ('the "blue" valve', 'the \\"blue\\" valve'),
        ("valve*", "valve\\*"),
        ("*", "\\*"),
        ("a*b* (c|d)+e", "a*b\\* \\(c\\|d\\)\\+e"),
        ("C:\\temp", "C:\\\\temp"),
        ("-- *-", "\\-- *-"),
        ("O'Brien", "O\\'Brien"),
        ("  ", "  "),
    ],
)
def test_operators_are_escaped_where_they_are_operators(text: str, query: str) -> None:
    assert keyword_query(text) == query


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("contract", "+(contract contract*)"),
        ("Lease of hall-7", "+Lease +hall +(7 7*)"),
        ("the of", "+the +(of of*)"),
        ("this OR That", "+this +\\OR +(That that*)"),
        ('"(*', ""),
        ("", ""),
    ],
)
def test_all_words_are_required_and_the_last_may_be_unfinished(text: str, query: str) -> None:
    assert all_words_query(text) == query
    parse_lucene(query)


@given(st.text(alphabet="ab1 \t+-|\"()*\\~'?", max_size=30))
def test_a_query_is_the_words_that_were_written_and_nothing_else(text: str) -> None:
    words = text.split()
    if words:
        assert words_of(parse_simple(keyword_query(text))) == words


def words_of(node: QueryNode | None) -> list[str]:
    """Return the optional words of a query, and fail on any other kind of node."""
    if isinstance(node, Words):
        return [node.text]
    assert isinstance(node, Group)
    return [word for is_required, one in node.clauses if not is_required for word in words_of(one)]


@pytest.mark.parametrize(
    ("question", "query"),
    [
        (
            "What is Apple's revenue in 2018?",
            'Apple revenue 2018 "Apple revenue"^0.25 "Apple revenue"~3^0.25 "revenue 2018"~3^0.25',
        ),
        ("What does IT do for the WHO?", 'IT WHO "IT WHO"~3^0.25'),
        ("WHAT IS IT", "WHAT IS IT"),
        ("Was ist der Druck?", "Druck"),
        (
            "valve pressure, valve pressure?",
            'valve pressure "valve pressure"^0.25 "pressure valve"^0.25 "valve pressure"~3^0.25',
        ),
        ("pressure -12", 'pressure \\-12 "pressure \\-12"^0.25 "pressure \\-12"~3^0.25'),
        ("flow in C:\\temp/*", 'flow C\\:\\\\temp\\/\\* "flow C\\:\\\\temp\\/\\*"~3^0.25'),
        ("who is it?", "who is it\\?"),
        ("The AND of valves", '\\AND valves "\\AND valves"~3^0.25'),
        ("*", "\\*"),
    ],
)
def test_a_question_is_looked_for_by_the_words_that_say_something(question: str, query: str) -> None:
    assert question_query(question) == query


@pytest.mark.parametrize(
    ("question", "query"),
    [
        (
            "What is Apple's gross margin in FY2018?",
            'gross margin "gross margin"^0.25 "gross margin"~3^0.25 Apple^0.25 FY2018^0.25',
        ),
        # The fruit is not a document name, and a single other word is not enough.
        ("Gross margin of apple juice", None),
        ("Apple margin 2018", None),
        ("Margin and tax of AND", 'Margin tax "Margin tax"~3^0.25 \\AND^0.25'),
    ],
)
def test_words_that_name_the_document_count_little(question: str, query: str | None) -> None:
    names = {"apple", "2018", "and"}
    assert question_query(question, names) == (query or question_query(question))


@given(st.text(alphabet="abANDORT1 \t+-|&\"()[]{}*\\~'?!^:/", max_size=30))
def test_nothing_in_a_question_steers_the_full_syntax(text: str) -> None:
    if not text.split():
        return
    node = parse_lucene(question_query(text, {"a", "b", "and", "or", "1"}))
    assert isinstance(node, Group)
    assert all(is_word_or_pair(one) and not is_required for is_required, one in node.clauses)


def is_word_or_pair(node: QueryNode) -> bool:
    return isinstance(node, Words) or (isinstance(node, Boost) and isinstance(node.node, Phrase | Words))


def test_a_long_text_has_few_pairs() -> None:
    text = " ".join(f"pump{number}" for number in range(500))
    query = question_query(text)
    assert (query.count('"^0.25'), query.count('"~3^0.25')) == (40, 40)


def test_the_query_chooses_by_name_and_scores_by_rarity() -> None:
    assert name_query("Apple?") == "(+names:apple^0.001 +words:apple)"
    assert name_query("what is it") is None


@pytest.mark.parametrize("question", ['a"b (c] d:e', "names:x OR words:*", "Müller ~ 2^3 \\", "报告 2023?"])
def test_no_question_becomes_an_operator(question: str) -> None:
    query = name_query(question)
    assert query is not None
    node = parse_lucene(query)
    assert isinstance(node, Group)
    assert query.count("(") == len(question_terms(question))


@pytest.mark.parametrize(("text", "also"), [("la piscine d'Aubier", "Aubier"), ("l’école", "école")])
def test_a_question_with_an_elided_article_finds_the_word_without_it(text: str, also: str) -> None:
    assert also in question_query(text).split()


def test_any_word_of_a_list_request_leaves_out_words_that_fit_everything() -> None:
    assert any_word_query("List all documents about Aubier") == "List documents Aubier"
    assert any_word_query("what is it about?") == "what is it about?"
    assert any_word_query("la commune d'Aubier") == "commune d\\'Aubier aubier communeaubier"
