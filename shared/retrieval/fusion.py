"""Fusion of rankings and scores, the order of blocks, and how sure a search is.

Pure: takes scores and positions, returns scores on 0-1 and orders; knows nothing of the service.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

KEYWORD_WEIGHT = 0.25  # best of the weights tried on five sets, see decision 0006


# Phrasings often ask for different things. With the usual 60, a block that fits each of them a little comes
# before one that answers one of them. Of the 74 passages that 30 questions in several steps need, 41 were
# among the first ten with 60, 53 with the question as the only phrasing, and 56 with 3.
_RANK_OFFSET = 3


def fuse_ranks(rankings: Sequence[Sequence[str]]) -> list[tuple[str, float]]:
    """Merge ranked lists by reciprocal rank fusion, best first.

    Score of an id = sum over lists of 1 / (3 + rank), rank counted from 1; an absent id adds 0.
    Ties keep the order of first appearance, so equal input gives equal output on replay.
    Source: Cormack, Clarke, Büttcher, SIGIR 2009, with a smaller constant.
    """
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1.0 / (_RANK_OFFSET + rank)
    return sorted(scores.items(), key=lambda scored: -scored[1])


def fuse_scores(
    keyword: Mapping[str, float], cosine: Mapping[str, float], keyword_weight: float = KEYWORD_WEIGHT
) -> list[tuple[str, float]]:
    """Merge keyword and vector results by their scores, best first, on a scale of 0-1.

    Score = w * bm25 / best bm25 + (1 - w) * cosine. An id without a keyword score adds 0 there; one without
    a cosine lies below everything that the vector search returned, so it gets the lowest cosine seen
    (0 when the vector search returned nothing). Ties keep the order of first appearance.

    Args:
        keyword: id -> BM25 score, any positive scale.
        cosine: id -> cosine similarity; negative values count as 0.
    """
    best = max((score for score in keyword.values() if score > 0), default=math.inf)
    floor = min((max(value, 0.0) for value in cosine.values()), default=0.0)
    fused = {
        item: keyword_weight * keyword.get(item, 0.0) / best
        + (1 - keyword_weight) * min(max(cosine.get(item, floor), 0.0), 1.0)
        for item in dict.fromkeys([*cosine, *keyword])
    }
    return sorted(fused.items(), key=lambda scored: -scored[1])


def cosine_of_vector_score(score: float) -> float:
    """Cosine similarity from the service's score of a vector-only query, 1 / (1 + (1 - cosine)).

    Source: Azure AI Search, "Relevance in vector search".

    Raises:
        ValueError: the score is not positive, so it is no such score.
    """
    if score <= 0:
        raise ValueError("a vector score is positive")
    return 2.0 - 1.0 / score


# The scale of scores, and so every threshold on it, is that of all-MiniLM-L6-v2: the median cosine of a
# question and a passage that answers it. Other models mean as much by other numbers.
REFERENCE_COSINE = 0.70
RELEVANT_COSINES: Mapping[str, float] = {"text-embedding-3-large": 0.44, "all-minilm-l6-v2": REFERENCE_COSINE}


def relevant_cosine(model: str) -> float:
    """The cosine of a question and a passage that answers it, by a model's or deployment's name; that of the
    scale for a model that was not measured."""
    name = model.lower()
    return next((value for known, value in RELEVANT_COSINES.items() if known in name), REFERENCE_COSINE)


def calibrated(cosine: float, relevant: float) -> float:
    """The cosine on the scale of scores, at most 1. `relevant`: what the model gives what answers."""
    return min(cosine * REFERENCE_COSINE / relevant, 1.0)


NAMED_WEIGHT = 0.3  # 0.2-0.4 do nearly as well
TOGETHER_WEIGHT = 0.07
PAGE_WEIGHT = 0.03
NEIGHBOUR_WEIGHT = 0.05
_HALF_NAMED = 2.0  # a score of rarity (natural logarithm) at which a name is worth half of its weight
_MAX_NARROWED = 8
_NEAR_BEST = 0.5
_BEST_BLOCKS = 50


@dataclass(frozen=True)
class BlockPosition:
    """The document and page of a block."""

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
    fused: Mapping[str, float], places: Mapping[str, BlockPosition], named: Mapping[str, float]
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


def _with_documents(scores: Mapping[str, float], places: Mapping[str, BlockPosition]) -> dict[str, float]:
    best = sorted(scores.items(), key=lambda item: -item[1])[:_BEST_BLOCKS]
    weights: defaultdict[str, float] = defaultdict(float)
    for block, score in best:
        weights[places[block].doc_id] += score - best[-1][1]
    if not any(weights.values()):
        return dict(scores)
    heaviest = max(weights.values())
    return {
        block: score + TOGETHER_WEIGHT * weights[places[block].doc_id] / heaviest
        for block, score in scores.items()
    }


def _with_pages(scores: Mapping[str, float], places: Mapping[str, BlockPosition]) -> dict[str, float]:
    """What a page says for its blocks: its second-best block, and the best one beside it."""
    pages: defaultdict[BlockPosition, list[float]] = defaultdict(list)
    for block, score in scores.items():
        if places[block].page_number is not None:
            pages[places[block]].append(score)
    ranked = {page: (*sorted(found, reverse=True), 0.0) for page, found in pages.items()}
    weighed = dict(scores)
    for block in scores:
        place = places[block]
        if place.page_number is not None:
            numbers = (place.page_number - 1, place.page_number + 1)
            beside = (BlockPosition(place.doc_id, number) for number in numbers)
            best_beside = max(ranked.get(page, (0.0,))[0] for page in beside)
            weighed[block] += PAGE_WEIGHT * ranked[place][1] + NEIGHBOUR_WEIGHT * best_beside
    return weighed


def top_score(scores: Sequence[float]) -> float:
    """The best fused score, 0 when nothing was found. Already on 0-1."""
    return max(scores, default=0.0)


def score_spread(scores: Sequence[float]) -> float:
    """How far the best stands above the fifth (or the last of fewer); 0 when fewer than two were found."""
    ranked = sorted(scores, reverse=True)[:5]
    return ranked[0] - ranked[-1] if ranked else 0.0
