"""How sure retrieval is. Pure: fused scores in, two numbers on 0-1 out, for the delegation policy."""

from collections.abc import Sequence


def top_score(scores: Sequence[float]) -> float:
    """The best fused score, 0 when nothing was found. Already on 0-1 (shared/core/fusion.py)."""
    return max(scores, default=0.0)


def score_spread(scores: Sequence[float]) -> float:
    """How far the best stands above the fifth (or the last of fewer); 0 when fewer than two were found."""
    ranked = sorted(scores, reverse=True)
    return ranked[0] - ranked[min(4, len(ranked) - 1)] if len(ranked) > 1 else 0.0
