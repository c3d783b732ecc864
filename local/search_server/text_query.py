"""Compiler from parsed search texts to tantivy queries over the searched fields."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import tantivy
from tantivy import Occur, Query

from local.search_server import analyzers
from local.search_server.errors import RequestError
from local.search_server.query_syntax import (
    Boost,
    Group,
    InField,
    Like,
    Phrase,
    QueryNode,
    Words,
    parse_lucene,
    parse_simple,
)
from local.search_server.schema import Field, Schema
from local.search_server.text_index import text_name


@dataclass(frozen=True)
class TextQuestion:
    """A parsed search text, with the fields to search and the default operator. `node` is None if every
    document matches.
    """

    node: QueryNode | None
    fields: tuple[Field, ...]
    default: Occur


def parse_question(
    schema: Schema, text: str, *, full: bool, match_all_words: bool, search_fields: Sequence[str]
) -> TextQuestion:
    """Parse a search text and resolve the fields it searches. By default, these are all searchable text
    fields.

    Raises:
        RequestError: 400, for a syntax error, or a field that isn't searchable text.
    """
    node = parse_lucene(text) if full else parse_simple(text)
    fields = tuple(searchable(schema, path) for path in search_fields) or schema.text_fields
    return TextQuestion(node, fields, Occur.Must if match_all_words else Occur.Should)


def searchable(schema: Schema, path: str) -> Field:
    field = schema.field(path, "searchFields")
    if not field.is_text:
        raise RequestError(f"The field '{path}' in the search field list is not searchable.")
    return field


class QueryCompiler:
    """Compiler for one search text. `layout` is the schema of the text index."""

    def __init__(self, schema: Schema, layout: tantivy.Schema, question: TextQuestion) -> None:
        self._schema = schema
        self._layout = layout
        self._question = question

    def compile(self) -> Query:
        """Return the tantivy query. It matches nothing if the analyzer removes the whole text.

        Raises:
            RequestError: 400, for a field that isn't searchable text, or a prefix that tantivy rejects.
        """
        question = self._question
        try:
            query = Query.all_query() if question.node is None else self._node(question.node, question.fields)
        except ValueError as error:
            raise RequestError(f"Failed to parse query string: {error}") from error
        return query or Query.empty_query()

    def _node(self, node: QueryNode, fields: Sequence[Field]) -> Query | None:
        """Compile a syntax node. Return None if the analyzer removes its whole text."""
        match node:
            case InField(path=path, node=inner):
                return self._node(inner, [searchable(self._schema, path)])
            case Boost(node=inner, factor=factor):
                query = self._node(inner, fields)
                return query and Query.boost_query(query, factor)
            case Group(clauses=clauses):
                parts = [(needed, self._node(inner, fields)) for needed, inner in clauses]
                default = self._question.default
                return _all([(Occur.Must if needed else default, query) for needed, query in parts])
            case Words() | Like() | Phrase():
                # The text may match in any field, and the scores of the fields add up.
                return _all([(Occur.Should, self._leaf(node, one)) for one in fields])

    def _leaf(self, node: Words | Like | Phrase, one: Field) -> Query | None:
        name = text_name(one)
        if isinstance(node, Like) and node.slips is None:
            beginning = Query.regex_query(self._layout, name, f"{re.escape(node.text)}.*")
            return Query.const_score_query(beginning, 1.0)
        if isinstance(node, Like):
            return Query.fuzzy_term_query(self._layout, name, node.text, node.slips or 0)
        tokens = analyzers.analyzer(one.analyzer).pre_tokenize(node.text).tokens
        if isinstance(node, Phrase) and len(tokens) > 1:
            words: list[str | tuple[int, str]] = [(token.position, token.text) for token in tokens]
            return Query.phrase_query(self._layout, name, words, node.slop)
        terms = [Query.term_query(self._layout, name, token.text) for token in tokens]
        return _all([(self._question.default, term) for term in terms])


def _all(parts: Sequence[tuple[Occur, Query | None]]) -> Query | None:
    """Combine the queries into one, without the None values. Return None if no query remains."""
    clauses = [(occur, query) for occur, query in parts if query is not None]
    if len(clauses) == 1:
        return clauses[0][1]
    return Query.boolean_query(clauses) if clauses else None
