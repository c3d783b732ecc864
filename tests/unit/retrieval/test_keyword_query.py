"""What a person writes is looked for; nothing of it steers the search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.search_server.lucene_syntax import parse_lucene
from local.search_server.query_nodes import Boost, Clause, Group, Occur, Phrase, QueryNode, Word
from local.search_server.simple_syntax import parse_simple
from shared.retrieval.keyword_query import keyword_query, question_query


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


@given(st.text(alphabet="ab1 \t+-|\"()*\\~'?", max_size=30))
def test_a_query_is_the_words_that_were_written_and_nothing_else(text: str) -> None:
    words = text.split()
    if words:
        assert words_of(parse_simple(keyword_query(text), Occur.SHOULD)) == words


def words_of(node: QueryNode) -> list[str]:
    """The words of a query without operators; fails on any other one."""
    if isinstance(node, Word):
        return [node.text]
    assert isinstance(node, Group)
    assert all(isinstance(clause, Clause) and clause.occur is Occur.SHOULD for clause in node.clauses)
    return [word for clause in node.clauses for word in words_of(clause.node)]


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


@given(st.text(alphabet="abANDORT1 \t+-|&\"()[]{}*\\~'?!^:/", max_size=30))
def test_nothing_in_a_question_steers_the_full_syntax(text: str) -> None:
    if not text.split():
        return
    node = parse_lucene(question_query(text), Occur.SHOULD)
    assert isinstance(node, Group)
    assert all(clause.occur is Occur.SHOULD for clause in node.clauses)
    assert all(is_word_or_pair(clause.node) for clause in node.clauses)


def is_word_or_pair(node: QueryNode) -> bool:
    return isinstance(node, Word) or (isinstance(node, Boost) and isinstance(node.node, Phrase))


def test_a_long_text_has_few_pairs() -> None:
    text = " ".join(f"pump{number}" for number in range(500))
    query = question_query(text)
    assert (query.count('"^0.25'), query.count('"~3^0.25')) == (40, 40)
