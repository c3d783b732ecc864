"""Score fusion, ordering of blocks, and confidence of search results.

Pure: takes scores and positions, returns scores of 0-1 and orders; independent of the search service.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

KEYWORD_WEIGHT = 0.25  # the best of the weights tried on five test sets (decision 0006)


# Constant of reciprocal rank fusion. Phrasings often ask for different things, and with the usual constant of
# 60, a block that matches all of them a little ranks above one that answers one of them. Of 74 passages
# needed by 30 multi-step questions, 41 were in the first ten with 60, 56 with 3, and 53 with the question
# alone.
_RANK_OFFSET = 3


def fuse_ranks(rankings: Sequence[Sequence[str]]) -> list[tuple[str, float]]:
    """Merge ranked lists of ids by reciprocal rank fusion. Return pairs of id and score, best first.

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
    """Fuse keyword and vector scores. Return pairs of id and fused score (0-1), best first.

    Score = w * bm25 / best bm25 + (1 - w) * cosine. A missing keyword score counts as 0. A missing cosine
    counts as the lowest cosine returned, or 0 without vector results, because the block ranks below all of
    them. Ties keep the order of first appearance.

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
    """Convert the search service's vector score, 1 / (1 + (1 - cosine)), to the cosine similarity.

    Source: Azure AI Search, "Relevance in vector search".

    Raises:
        ValueError: the score is not positive.
    """
    if score <= 0:
        raise ValueError("The vector score must be positive.")
    return 2.0 - 1.0 / score


# Scores and thresholds are calibrated to all-MiniLM-L6-v2, where the median cosine of a question and a
# relevant passage is 0.70. Other models have other medians for the same relevance.
REFERENCE_COSINE = 0.70
RELEVANT_COSINES: Mapping[str, float] = {"text-embedding-3-large": 0.44, "all-minilm-l6-v2": REFERENCE_COSINE}


def relevant_cosine(model: str) -> float:
    """Return a model's typical cosine of a question and a relevant passage. Unmeasured models get the
    reference value.
    """
    name = model.lower()
    return next(
        (value for measured_name, value in RELEVANT_COSINES.items() if measured_name in name),
        REFERENCE_COSINE,
    )


def calibrated(cosine: float, relevant: float) -> float:
    """Scale a cosine to the reference model, at most 1. `relevant` is the model's value from
    `relevant_cosine`.
    """
    return min(cosine * REFERENCE_COSINE / relevant, 1.0)


NAMED_WEIGHT = 0.3  # maximum bonus of a named document; values from 0.2 to 0.4 give nearly the same results
TOGETHER_WEIGHT = 0.07
PAGE_WEIGHT = 0.03
NEIGHBOUR_WEIGHT = 0.05
_HALF_NAMED = 2.0  # a name with this rarity score (natural logarithm) gets half of NAMED_WEIGHT
_MAX_NARROWED = 8
_NEAR_BEST = 0.5
_BEST_BLOCKS = 50


@dataclass(frozen=True)
class BlockPosition:
    """The document and page that contain a block."""

    doc_id: str
    page_number: int | None


def naming_share(score: float) -> float:
    """Convert a document's score in the search for document names to the confidence (0 to 1) that the
    question names the document.
    """
    return max(score, 0.0) / (max(score, 0.0) + _HALF_NAMED)


def documents_to_narrow_to(name_scores: Mapping[str, float]) -> tuple[str, ...]:
    """Return the ids of up to 8 documents that the question names best, best first, to be searched separately
    as well.
    """
    ranked = sorted(name_scores.items(), key=lambda item: -item[1])
    return tuple(doc_id for doc_id, score in ranked[:_MAX_NARROWED] if score >= _NEAR_BEST * ranked[0][1])


def order_blocks(
    fused: Mapping[str, float], places: Mapping[str, BlockPosition], name_scores: Mapping[str, float]
) -> list[str]:
    """Return the block ids, best first. Named documents, documents with many good blocks and adjacent pages
    get a bonus.

    Args:
        fused: id -> fused score on 0-1.
        name_scores: doc_id -> the service's score of names shared by question and document.
    """
    scores = {
        block: score + NAMED_WEIGHT * naming_share(name_scores.get(places[block].doc_id, 0.0))
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
    """Add a bonus to each score for the second-best block on the same page and the best block on an adjacent
    page.
    """
    pages: defaultdict[BlockPosition, list[float]] = defaultdict(list)
    for block, score in scores.items():
        if places[block].page_number is not None:
            pages[places[block]].append(score)
    ranked = {page: (*sorted(scores_of_page, reverse=True), 0.0) for page, scores_of_page in pages.items()}
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
    """Return the best fused score (0-1), or 0 if there are no scores."""
    return max(scores, default=0.0)


def score_spread(scores: Sequence[float]) -> float:
    """Return the difference between the best score and the fifth best (or the last); 0 for fewer than two
    scores.
    """
    ranked = sorted(scores, reverse=True)[:5]
    return ranked[0] - ranked[-1] if ranked else 0.0
