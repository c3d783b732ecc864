"""Document first, softly: what is known of documents moves their blocks up. Pure.

Three signs, each added to a block's fused score, none of them able to exclude a block:
the document is named in the question; many of the best blocks are of the same document; the page before or
after holds a good block, too. The weights are measured on five sets (docs/decisions/0013).
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

NAMED_WEIGHT = 0.3  # 0.2-0.4 do nearly as well
TOGETHER_WEIGHT = 0.1
NEIGHBOUR_WEIGHT = 0.05
_HALF_NAMED = 2.0  # a score of rarity (natural logarithm) at which a name is worth half of its weight
_MAX_NARROWED = 8
_NEAR_BEST = 0.5
_BEST_BLOCKS = 50


@dataclass(frozen=True)
class Place:
    """Where a block stands."""

    doc_id: str
    page_number: int | None


def naming_share(score: float) -> float:
    """How surely a document is named, 0-1, from the service's score of the names that it shares."""
    return max(score, 0.0) / (max(score, 0.0) + _HALF_NAMED)


def documents_to_narrow_to(named: Mapping[str, float]) -> tuple[str, ...]:
    """The documents named best, best first: those worth a search of their own."""
    ranked = sorted(named.items(), key=lambda item: -item[1])
    return tuple(doc_id for doc_id, score in ranked[:_MAX_NARROWED] if score >= _NEAR_BEST * ranked[0][1])


def order_blocks(
    fused: Mapping[str, float], places: Mapping[str, Place], named: Mapping[str, float]
) -> list[str]:
    """The ids of blocks, best first.

    Args:
        fused: id -> fused score on 0-1.
        named: doc_id -> the service's score of the names that the question and the document share.
    """
    scores = {
        block: score + NAMED_WEIGHT * naming_share(named.get(places[block].doc_id, 0.0))
        for block, score in fused.items()
    }
    scores = _with_neighbours(_with_documents(scores, places), places)
    return sorted(scores, key=lambda block: -scores[block])


def _with_documents(scores: Mapping[str, float], places: Mapping[str, Place]) -> dict[str, float]:
    best = sorted(scores.items(), key=lambda item: -item[1])[:_BEST_BLOCKS]
    weights: defaultdict[str, float] = defaultdict(float)
    for block, score in best:
        weights[places[block].doc_id] += score - best[-1][1]
    heaviest = max(weights.values(), default=0.0)
    if heaviest <= 0:
        return dict(scores)
    return {
        block: score + TOGETHER_WEIGHT * weights[places[block].doc_id] / heaviest
        for block, score in scores.items()
    }


def _with_neighbours(scores: Mapping[str, float], places: Mapping[str, Place]) -> dict[str, float]:
    pages: dict[tuple[str, int], float] = {}
    for block, score in scores.items():
        place = places[block]
        if place.page_number is not None:
            key = (place.doc_id, place.page_number)
            pages[key] = max(pages.get(key, 0.0), score)
    return {
        block: score + NEIGHBOUR_WEIGHT * _beside(places[block], pages) for block, score in scores.items()
    }


def _beside(place: Place, pages: Mapping[tuple[str, int], float]) -> float:
    if place.page_number is None:
        return 0.0
    return max(pages.get((place.doc_id, place.page_number + step), 0.0) for step in (-1, 1))
