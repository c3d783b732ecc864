"""A documented heuristic in place of the service's semantic ranker, which is a model. Pure.

rerankerScore = 4 * (0.55 passage + 0.20 document + 0.10 title + 0.15 retrieval), each part 0 to 1: passage,
document and title are the shares of the query's term weight in the best passage, the whole text and the
title; retrieval is the hit's score divided by the best hit's. A term weighs 1 + ln((n + 1) / (df + 1)) among
the n reranked documents. Terms are English stems without stop and question words.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from local.search_server import analyzers
from local.search_server.definition import SemanticConfiguration
from local.search_server.schema import JsonObject, values_at

MAX_RERANKED: Final = 50  # number of hits that the service reranks per query
MAX_SCORE: Final = 4.0
MAX_PASSAGE_CHARS: Final = 400
_BREAK: Final = re.compile(r"(?<=[.!?…])\s+|\n+")
_PASSAGE, _DOCUMENT, _TITLE, _RETRIEVAL = 0.55, 0.20, 0.10, 0.15


@dataclass(frozen=True)
class Candidate:
    slot: int
    score: float
    body: JsonObject


@dataclass(frozen=True)
class Reranked:
    candidate: Candidate
    score: float


class Reranker:
    def __init__(self, configuration: SemanticConfiguration, query: str) -> None:
        fields = configuration.prioritized_fields
        self._title = [fields.title_field.field_name] if fields.title_field else []
        self._content = [field.field_name for field in fields.prioritized_content_fields]
        self._keywords = [field.field_name for field in fields.prioritized_keywords_fields]
        self._terms = frozenset(_terms(query))

    def rerank(self, candidates: Sequence[Candidate]) -> list[Reranked]:
        """Return the candidates with their reranker scores, best first. Equal scores keep the order of
        retrieval.
        """
        whole = [self._matched_terms(self._texts(candidate.body)) for candidate in candidates]
        weights = {term: _weight(term, whole) for term in self._terms}
        best = max((candidate.score for candidate in candidates), default=0.0)
        reranked = []
        for candidate, terms in zip(candidates, whole, strict=True):
            coverage = self._best_passage(candidate.body, weights)
            title = self._matched_terms(_strings(candidate.body, self._title))
            retrieval = candidate.score / best if best > 0 else 0.0
            share = (
                _PASSAGE * coverage
                + _DOCUMENT * _share(terms, weights)
                + _TITLE * _share(title, weights)
                + _RETRIEVAL * retrieval
            )
            reranked.append(Reranked(candidate, MAX_SCORE * share))
        return sorted(reranked, key=lambda one: -one.score)

    def _texts(self, body: JsonObject) -> list[str]:
        return _strings(body, [*self._title, *self._content, *self._keywords])

    def _matched_terms(self, texts: Iterable[str]) -> frozenset[str]:
        return frozenset(term for text in texts for term in _terms(text) if term in self._terms)

    def _best_passage(self, body: JsonObject, weights: Mapping[str, float]) -> float:
        texts = _strings(body, self._content or self._title)
        passages = (self._matched_terms([passage]) for text in texts for passage in _passages(text))
        return max((_share(terms, weights) for terms in passages), default=0.0)


def _passages(text: str) -> Iterator[str]:
    """Yield the sentences of a text. Sentences above 400 characters are split."""
    for sentence in _BREAK.split(text):
        for start in range(0, len(sentence), MAX_PASSAGE_CHARS):
            yield sentence[start : start + MAX_PASSAGE_CHARS]


def _terms(text: str) -> list[str]:
    return analyzers.analyzer(analyzers.QUESTION).analyze(text)


def _weight(term: str, documents: Sequence[frozenset[str]]) -> float:
    frequency = sum(term in terms for terms in documents)
    return 1 + math.log((len(documents) + 1) / (frequency + 1))


def _share(terms: frozenset[str], weights: Mapping[str, float]) -> float:
    total = sum(weights.values())
    return sum(weights[term] for term in terms) / total if total else 0.0


def _strings(body: JsonObject, paths: Iterable[str]) -> list[str]:
    return [value for path in paths for value in values_at(body, path) if isinstance(value, str)]
