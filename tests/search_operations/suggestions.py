"""Suggest and autocomplete: documents and words that continue the typed text. Both respect the filter."""

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from local.search_server import analyzers, store
from local.search_server.definition import WireModel
from local.search_server.errors import RequestError
from local.search_server.index import View
from local.search_server.projection import Projection
from local.search_server.requests import CommaList
from local.search_server.schema import JsonObject, values_at


class SuggestRequest(WireModel):
    search: str = Field(min_length=1, max_length=100)
    suggester_name: str
    filter: str | None = None
    select: CommaList = ()
    top: int = Field(default=5, ge=1, le=100)


class AutocompleteRequest(WireModel):
    search: str = Field(min_length=1, max_length=100)
    suggester_name: str
    autocomplete_mode: Literal["oneTerm"] = "oneTerm"
    filter: str | None = None
    top: int = Field(default=5, ge=1, le=100)


def suggest(view: View, request: SuggestRequest) -> JsonObject:
    """Return rows with `@search.text`, the complete field that matched. Without `select`, they contain only
    the key.

    Raises:
        RequestError: Status 400, for an unknown suggester or field, or an invalid filter.
    """
    projection = Projection(view.schema, request.select or [view.schema.key.path])
    suggestions = list(_continuing(view, request))[: request.top]
    return {"value": [{"@search.text": text, **projection.apply(body, {})} for body, text in suggestions]}


def autocomplete(view: View, request: AutocompleteRequest) -> JsonObject:
    """Return rows with `text`, a word that continues the last typed word, and `queryPlusText`, the query with
    that word.
    """
    *before, prefix = _words(request.search) or [""]
    counts: Counter[str] = Counter()
    for _, text in _continuing(view, request):
        counts.update({term for term in _words(text) if term.startswith(prefix)})
    rows: list[JsonObject] = [
        {"text": term, "queryPlusText": " ".join([*before, term])}
        for term, _ in counts.most_common(request.top)
    ]
    return {"value": list(rows)}


def _words(text: str) -> list[str]:
    return analyzers.analyzer(analyzers.STANDARD).analyze(text)


def _continuing(
    view: View, request: SuggestRequest | AutocompleteRequest
) -> Iterator[tuple[JsonObject, str]]:
    """Yield each document that passes the filter with its first text that contains all words. The last word
    may be a prefix.
    """
    suggesters = {one.name: one for one in view.schema.definition.suggesters}
    if (suggester := suggesters.get(request.suggester_name)) is None:
        raise RequestError(f"The specified suggester name '{request.suggester_name}' does not exist.")
    paths = suggester.source_fields
    *whole, prefix = _words(request.search) or [""]
    bodies = store.read_bodies(view.connection, view.select(request.filter).slots.tolist())
    for body in bodies.values() if prefix else ():
        for text in (str(value) for path in paths for value in values_at(body, path)):
            terms = _words(text)
            if set(whole) <= set(terms) and any(term.startswith(prefix) for term in terms):
                yield body, text
                break
