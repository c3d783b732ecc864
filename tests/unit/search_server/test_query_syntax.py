"""Tests that both query syntaxes accept every query the app creates from a question."""

from hypothesis import given
from hypothesis import strategies as st

from local.search_server.query_syntax import parse_lucene, parse_simple
from shared.retrieval.document_names import reference_query
from shared.retrieval.keyword_query import keyword_query, name_query, question_query


@given(st.text(max_size=60))
def test_what_the_application_writes_has_a_meaning(question: str) -> None:
    parse_simple(keyword_query(question))
    for query in (question_query(question), reference_query(question), name_query(question)):
        parse_lucene(query or "")
