"""How sure retrieval is. Pure: scores in, numbers on 0-1 out, for the delegation policy."""

from collections.abc import Sequence

_BEST_OF_RANKER = 4.0


def reranked_share(score: float) -> float:
    """The semantic ranker's score on 0-1: 4 is a full answer, 2 a partial one, 0 has nothing to do with it.

    A quarter of it, as the service describes its scale: 0.5 is then what the fused score calls weak, too.
    Source: "Semantic ranking in Azure AI Search", how ranking is scored.
    """
    return min(max(score, 0.0), _BEST_OF_RANKER) / _BEST_OF_RANKER


def top_score(scores: Sequence[float]) -> float:
    """The best fused score, 0 when nothing was found. Already on 0-1."""
    return max(scores, default=0.0)


def score_spread(scores: Sequence[float]) -> float:
    """How far the best stands above the fifth (or the last of fewer); 0 when fewer than two were found."""
    ranked = sorted(scores, reverse=True)
    return ranked[0] - ranked[min(4, len(ranked) - 1)] if len(ranked) > 1 else 0.0
