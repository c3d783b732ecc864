"""Fusing rankings. Pure: takes ranked or scored ids, returns ranked ids; knows nothing of Azure."""

from collections.abc import Mapping, Sequence

KEYWORD_WEIGHT = 0.25  # best of the weights tried on five sets, see docs/decisions/0006


def fuse_ranks(rankings: Sequence[Sequence[str]], k: int = 60) -> list[tuple[str, float]]:
    """Merge ranked lists by reciprocal rank fusion, best first.

    Score of an id = sum over lists of 1 / (k + rank), rank counted from 1; an absent id adds 0.
    Ties keep the order of first appearance, so equal input gives equal output on replay.
    Source: Cormack, Clarke, Büttcher, SIGIR 2009.

    Raises:
        ValueError: k is not positive.
    """
    if k <= 0:
        raise ValueError("k must be positive")
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1.0 / (k + rank)
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
    best = max(keyword.values(), default=0.0)
    floor = min((max(value, 0.0) for value in cosine.values()), default=0.0)
    fused = {
        item: keyword_weight * (keyword.get(item, 0.0) / best if best > 0 else 0.0)
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
