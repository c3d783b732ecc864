"""Document first, softly: what is known of documents moves their blocks up. Pure.

Four signs, each added to a block's fused score, none of them able to exclude a block:
the document is named in the question; many of the best blocks are of the same document; the page itself, or
the one before or after, holds a good block, too. The weights are measured on five sets (docs/decisions/0013).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NAMED_WEIGHT = 0.3  # 0.2-0.4 do nearly as well
TOGETHER_WEIGHT = 0.07
PAGE_WEIGHT = 0.03
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
    scores = _with_pages(_with_documents(scores, places), places)
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


def _with_pages(scores: Mapping[str, float], places: Mapping[str, Place]) -> dict[str, float]:
    """What a page says for its blocks: its second-best block, and the best one beside it."""
    pages: defaultdict[Place, list[float]] = defaultdict(list)
    for block, score in scores.items():
        if places[block].page_number is not None:
            pages[places[block]].append(score)
    best_two = {page: (*sorted(found, reverse=True), 0.0)[:2] for page, found in pages.items()}
    return {block: score + _of_page(places[block], best_two) for block, score in scores.items()}


def _of_page(place: Place, best_two: Mapping[Place, Sequence[float]]) -> float:
    if place.page_number is None:
        return 0.0
    beside = (best_two.get(Place(place.doc_id, place.page_number + step), (0.0,)) for step in (-1, 1))
    return PAGE_WEIGHT * best_two[place][1] + NEIGHBOUR_WEIGHT * max(found[0] for found in beside)
