"""Suggest and autocomplete: documents and words that continue what was typed. Both respect the filter."""

from collections import Counter
from collections.abc import Iterator, Sequence

import tantivy
from tantivy import Query

from local.search_server import analyzers, store
from local.search_server.index import View
from local.search_server.projection import Projection
from local.search_server.query_syntax import escape_regex
from local.search_server.ranking import Scored, best_texts
from local.search_server.requests import AutocompleteRequest, SuggestRequest
from local.search_server.schema import JsonObject, values_at
from local.search_server.text_index import suggestion_name

MAX_SCANNED = 200  # documents whose words autocomplete counts; unmeasured


def suggest(view: View, request: SuggestRequest) -> JsonObject:
    """Rows with `@search.text`, the whole field that matched. Without `select` only the key is returned.

    Raises:
        RequestError: 400, an unknown suggester, field or filter.
    """
    paths = view.schema.suggester(request.suggester_name).source_fields
    words = _words(request.search)
    projection = Projection(view.schema, request.select or [view.schema.key.path])
    hits = _find(view, words, paths, request.filter, request.top)
    bodies = store.read_bodies(view.connection, [slot for slot, _ in hits])
    rows: list[JsonObject] = [
        {
            "@search.text": next(_matching_texts(bodies[slot], paths, words), ""),
            **projection.apply(bodies[slot], {}),
        }
        for slot, _ in hits
    ]
    return {"value": list(rows)}


def autocomplete(view: View, request: AutocompleteRequest) -> JsonObject:
    """Rows with `text`, a word that begins with the last one typed, and `queryPlusText`."""
    paths = view.schema.suggester(request.suggester_name).source_fields
    words = _words(request.search)
    hits = _find(view, words[-1:], paths, request.filter, MAX_SCANNED)
    bodies = store.read_bodies(view.connection, [slot for slot, _ in hits])
    counts: Counter[str] = Counter()
    for body in bodies.values():
        texts = _matching_texts(body, paths, words[-1:])
        counts.update({term for text in texts for term in _words(text) if term.startswith(words[-1])})
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[: request.top]
    before = " ".join(words[:-1])
    rows: list[JsonObject] = [
        {"text": text, "queryPlusText": f"{before} {text}".strip()} for text, _ in ordered
    ]
    return {"value": list(rows)}


def _words(text: str) -> list[str]:
    return analyzers.analyzer(analyzers.STANDARD).analyze(text)


def _query(layout: tantivy.Schema, name: str, words: Sequence[str]) -> Query:
    """All words in the field, the last as a prefix."""
    parts = [Query.term_query(layout, name, word) for word in words[:-1]]
    # Scored, so that shorter texts come first: an all-prefix match scores 1 like any other.
    parts.append(Query.regex_query(layout, name, escape_regex(words[-1]) + ".*"))
    return Query.boolean_query([(tantivy.Occur.Must, part) for part in parts])


def _find(
    view: View, words: Sequence[str], paths: Sequence[str], filter_text: str | None, limit: int
) -> Scored:
    selection = view.select(filter_text)
    if not words:
        return []
    fields = [view.schema.fields[path] for path in paths]
    queries = [_query(view.snapshot.layout, suggestion_name(field), words) for field in fields]
    query = Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])
    return best_texts(view, query, selection, limit)


def _matching_texts(body: JsonObject, paths: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    for text in (str(value) for path in paths for value in values_at(body, path)):
        terms = _words(text)
        is_begun = any(term.startswith(words[-1]) for term in terms)
        if is_begun and all(word in terms for word in words[:-1]):
            yield text
