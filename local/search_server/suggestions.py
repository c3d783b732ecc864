"""Suggest and autocomplete: documents and words that continue what was typed. Both respect the filter."""

from collections import Counter
from collections.abc import Iterator, Sequence

import tantivy
from tantivy import Query

from local.search_server import analyzers, store
from local.search_server.errors import RequestError
from local.search_server.index import View
from local.search_server.passages import mark
from local.search_server.projection import Projection
from local.search_server.query_syntax import escape_regex
from local.search_server.ranking import Scored, best_texts, parse_order, sort_slots
from local.search_server.requests import AutocompleteRequest, SuggestRequest
from local.search_server.schema import Field, JsonObject, values_at
from local.search_server.text_index import suggestion_name
from local.search_server.text_query import within_distance

MAX_SCANNED = 200  # documents whose words autocomplete counts; unmeasured


def suggest(view: View, request: SuggestRequest) -> JsonObject:
    """Rows with `@search.text`, the whole field that matched. Without `select` only the key is returned.

    Raises:
        RequestError: 400, an unknown suggester, field or filter.
    """
    fields = _fields(view, request.suggester_name, request.search_fields)
    typed = _Typed(request.search, fuzzy=request.fuzzy)
    projection = Projection(view.schema, request.select or [view.schema.key.path])
    order = parse_order(view.schema, request.orderby)
    hits = _find(view, typed, fields, request.filter, MAX_SCANNED if order else request.top)
    hits = (sort_slots(view, order, hits) if order else hits)[: request.top]
    bodies = store.read_bodies(view.connection, [slot for slot, _ in hits])
    rows = []
    tags = (request.highlight_pre_tag, request.highlight_post_tag)
    for slot, _ in hits:
        text = next(_matching_texts(bodies[slot], fields, typed), "")
        marked = mark(text, analyzers.STANDARD, typed.continues, tags)[0] if any(tags) else text
        rows.append({"@search.text": marked, **projection.apply(bodies[slot], {})})
    return _answer(request.minimum_coverage, rows)


def autocomplete(view: View, request: AutocompleteRequest) -> JsonObject:
    """Rows with `text` and `queryPlusText`, the most frequent first."""
    fields = _fields(view, request.suggester_name, request.search_fields)
    typed = _Typed(request.search, fuzzy=request.fuzzy)
    # With one term the words before the last need not be in the same field, or anywhere.
    looked_up = typed if request.autocomplete_mode == "oneTermWithContext" else typed.last_only()
    hits = _find(view, looked_up, fields, request.filter, MAX_SCANNED)
    bodies = store.read_bodies(view.connection, [slot for slot, _ in hits])
    counts: Counter[str] = Counter()
    for slot, _ in hits:
        found = set()
        for text in _matching_texts(bodies[slot], fields, looked_up):
            found |= set(_completions(text, typed, request.autocomplete_mode))
        counts.update(found)
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[: request.top]
    pre, post = request.highlight_pre_tag, request.highlight_post_tag
    before = " ".join(typed.words[:-1])
    if request.autocomplete_mode == "oneTermWithContext":
        before = " ".join(typed.words[:-2])
    rows: list[JsonObject] = [
        {"text": text, "queryPlusText": f"{before} {pre}{text}{post}".strip()} for text, _ in ordered
    ]
    return _answer(request.minimum_coverage, rows)


class _Typed:
    """What was typed: whole words, and a last one that may be half."""

    def __init__(self, text: str, *, fuzzy: bool) -> None:
        self.words = analyzers.analyzer(analyzers.STANDARD).analyze(text)
        self._fuzzy = fuzzy

    def last_only(self) -> "_Typed":
        last = _Typed("", fuzzy=self._fuzzy)
        last.words = self.words[-1:]
        return last

    def query(self, layout: tantivy.Schema, name: str) -> Query:
        """All words in the field, the last as a prefix."""
        parts = [Query.term_query(layout, name, word) for word in self.words[:-1]]
        last = self.words[-1]
        if self._fuzzy:
            parts.append(Query.fuzzy_term_query(layout, name, last, 1, prefix=True))
        else:
            # Scored, so that shorter texts come first: an all-prefix match scores 1 like any other.
            parts.append(Query.regex_query(layout, name, escape_regex(last) + ".*"))
        return Query.boolean_query([(tantivy.Occur.Must, part) for part in parts])

    def continues(self, term: str) -> bool:
        """Whether a term of a text is one of the words, or begins with the last."""
        return term in self.words[:-1] or self.completes(term)

    def completes(self, term: str) -> bool:
        last = self.words[-1]
        if term.startswith(last):
            return True
        return self._fuzzy and any(
            within_distance(term[:size], last, 1) for size in range(len(last) - 1, len(last) + 2)
        )

    def in_text(self, terms: Sequence[str]) -> bool:
        return all(word in terms for word in self.words[:-1]) and any(self.completes(term) for term in terms)


def _fields(view: View, suggester_name: str, search_fields: Sequence[str]) -> list[Field]:
    paths = view.schema.suggester(suggester_name).source_fields
    for path in search_fields:
        if path not in paths:
            raise RequestError(
                f"The field '{path}' is not a source field of the suggester '{suggester_name}'."
            )
    return [view.schema.fields[path] for path in search_fields or paths]


def _find(view: View, typed: _Typed, fields: Sequence[Field], filter_text: str | None, limit: int) -> Scored:
    selection = view.select(filter_text)
    if not typed.words:
        return []
    layout = view.snapshot.layout
    queries = [typed.query(layout, suggestion_name(field)) for field in fields]
    query = Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])
    return best_texts(view, query, selection, limit)


def _matching_texts(body: JsonObject, fields: Sequence[Field], typed: _Typed) -> Iterator[str]:
    for field in fields:
        for value in values_at(body, field.path):
            if typed.in_text(analyzers.analyzer(analyzers.STANDARD).analyze(str(value))):
                yield str(value)


def _completions(text: str, typed: _Typed, mode: str) -> Iterator[str]:
    terms = analyzers.analyzer(analyzers.STANDARD).analyze(text)
    for at, term in enumerate(terms):
        if not typed.completes(term):
            continue
        if mode == "oneTerm":
            yield term
        elif mode == "twoTerms":
            yield " ".join(terms[at : at + 2])
        elif len(typed.words) < 2:
            yield term
        elif at > 0 and terms[at - 1] == typed.words[-2]:
            yield f"{terms[at - 1]} {term}"


def _answer(minimum_coverage: float | None, rows: list[JsonObject]) -> JsonObject:
    head: JsonObject = {} if minimum_coverage is None else {"@search.coverage": 100.0}
    return {**head, "value": list(rows)}
