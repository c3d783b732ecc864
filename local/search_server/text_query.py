"""A query's meaning as a tantivy query over chosen fields."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, assert_never

import tantivy
from tantivy import Query

from local.search_server import analyzers
from local.search_server.errors import RequestError
from local.search_server.query_syntax import (
    Boost,
    Clause,
    Fuzzy,
    Group,
    InField,
    MatchAll,
    Occur,
    Pattern,
    Phrase,
    QueryNode,
    Word,
    parse_lucene,
    parse_simple,
)
from local.search_server.schema import Field, Schema
from local.search_server.text_index import text_name

_OCCUR: Final = {
    Occur.SHOULD: tantivy.Occur.Should,
    Occur.MUST: tantivy.Occur.Must,
    Occur.MUST_NOT: tantivy.Occur.MustNot,
}
_NOT_LOWERED: Final = frozenset({"keyword", "whitespace"})


@dataclass(frozen=True)
class TextQuestion:
    """A parsed search text with everything that decides how it is matched."""

    node: QueryNode
    fields: tuple[Field, ...]
    default: Occur

    @property
    def matches_all(self) -> bool:
        return isinstance(self.node, MatchAll)


def parse_question(
    schema: Schema, text: str, *, full: bool, match_all_words: bool, search_fields: Sequence[str]
) -> TextQuestion:
    """Read a search text.

    Raises:
        RequestError: 400, a syntax error, or a field that is not searchable text.
    """
    default = Occur.MUST if match_all_words else Occur.SHOULD
    node = parse_lucene(text, default) if full else parse_simple(text, default)
    fields = tuple(searchable(schema, path) for path in search_fields) or schema.text_fields
    return TextQuestion(node, fields, default)


def searchable(schema: Schema, path: str) -> Field:
    found = schema.field(path, "searchFields")
    if not found.is_text:
        raise RequestError(f"The field '{path}' in the search field list is not searchable.")
    return found


class QueryCompiler:
    """Compiles one question; `layout` is the text index's schema."""

    def __init__(self, schema: Schema, layout: tantivy.Schema, question: TextQuestion) -> None:
        self._schema = schema
        self._layout = layout
        self._question = question

    def compile(self) -> Query:
        """The tantivy query. A question of stop words alone matches nothing.

        Raises:
            RequestError: 400, a regular expression that the index cannot run, or an unknown field.
        """
        try:
            return self._node(self._question.node, self._question.fields) or Query.empty_query()
        except ValueError as error:
            raise RequestError(f"Failed to parse query string: {error}") from error

    def _node(self, node: QueryNode, fields: Sequence[Field]) -> Query | None:
        match node:
            case MatchAll():
                return Query.all_query()
            case InField(path=path, node=inner):
                return self._node(inner, [searchable(self._schema, path)])
            case Boost(node=inner, factor=factor):
                query = self._node(inner, fields)
                return None if query is None else Query.boost_query(query, factor)
            case Group(clauses=clauses):
                return self._group(clauses, fields)
            case Word() | Phrase() | Pattern() | Fuzzy():
                return self._across(node, fields)
            case _:
                assert_never(node)

    def _group(self, clauses: Sequence[Clause], fields: Sequence[Field]) -> Query | None:
        compiled = [(clause.occur, self._node(clause.node, fields)) for clause in clauses]
        parts = [(occur, query) for occur, query in compiled if query is not None]
        if not parts:
            return None
        if all(occur is Occur.MUST_NOT for occur, _ in parts):
            parts.append((Occur.MUST, Query.all_query()))
        return Query.boolean_query([(_OCCUR[occur], query) for occur, query in parts])

    def _across(self, node: Word | Phrase | Pattern | Fuzzy, fields: Sequence[Field]) -> Query | None:
        """The node may match in any of the fields; scores of the fields add up."""
        found = [query for one in fields if (query := self._leaf(node, one)) is not None]
        if len(found) <= 1:
            return found[0] if found else None
        return Query.boolean_query([(tantivy.Occur.Should, query) for query in found])

    def _leaf(self, node: Word | Phrase | Pattern | Fuzzy, one: Field) -> Query | None:
        name = text_name(one)
        match node:
            case Pattern(regex=regex):
                return Query.const_score_query(
                    Query.regex_query(self._layout, name, _lowered(one, regex)), 1.0
                )
            case Fuzzy(text=text, distance=distance):
                return Query.fuzzy_term_query(self._layout, name, _lowered(one, text), distance)
            case Phrase(text=text, slop=slop):
                return self._phrase(
                    name, analyzers.analyzer(one.search_analyzer).pre_tokenize(text).tokens, slop
                )
            case Word(text=text):
                return self._terms(name, analyzers.analyzer(one.search_analyzer).analyze(text))

    def _phrase(self, name: str, tokens: Sequence[tantivy.Token], slop: int) -> Query | None:
        if len(tokens) <= 1:
            return self._terms(name, [token.text for token in tokens])
        # Positions, not order: a stop word that was left out keeps its place between the others.
        words: list[str | tuple[int, str]] = [(token.position, token.text) for token in tokens]
        return Query.phrase_query(self._layout, name, words, slop)

    def _terms(self, name: str, terms: Sequence[str]) -> Query | None:
        queries = [Query.term_query(self._layout, name, term) for term in terms]
        if len(queries) <= 1:
            return queries[0] if queries else None
        occur = _OCCUR[self._question.default]
        return Query.boolean_query([(occur, query) for query in queries])


def _lowered(one: Field, text: str) -> str:
    return text if one.search_analyzer in _NOT_LOWERED else text.lower()
