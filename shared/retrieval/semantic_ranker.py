"""Reranking of hits by the search service's semantic ranker, which is paused after the service refuses it."""

from collections.abc import Callable, Sequence
from time import monotonic

from shared.platform.errors import GroundworkError
from shared.platform.telemetry import get_logger
from shared.retrieval.block_requests import ranker_request
from shared.retrieval.models import Hit
from shared.retrieval.schema import SEMANTIC_CONFIGURATION
from shared.retrieval.secured_index import SecuredIndex

_MAX_RERANKED = 50  # the service reranks at most this number of rows
RANKER_PAUSE_S = 600.0  # pause after the ranker refuses; an exhausted quota is renewed only in the next month
_RERANKER_SCORE = "@search.reranker_score"


class RankerPause:
    """A pause of the semantic ranker, which starts when the service refuses to rank. One instance per
    process.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._ends = clock()

    @property
    def is_on(self) -> bool:
        return self._clock() < self._ends

    def begin(self, reason: str) -> None:
        """Log the refusal and skip the ranker for the next RANKER_PAUSE_S seconds."""
        self._ends = self._clock() + RANKER_PAUSE_S
        get_logger().warning("search.ranker_refused", error_type=reason)


_PAUSE = RankerPause()


async def semantically_ranked(
    index: SecuredIndex,
    question: str,
    vector: tuple[float, ...],
    hits: Sequence[Hit],
    pause: RankerPause = _PAUSE,
) -> list[Hit]:
    """Reorder the hits by semantic ranker score, unranked ones last. If the ranker fails or is paused, the
    order is unchanged.

    Fused scores are kept and reassigned in the new order, so the best hit has the best score. The ranker's
    own scores use another scale, and thresholds must not depend on whether the ranker is available. Without a
    ranker, or with its quota used up, the service rejects the query or omits the scores.
    """
    if not hits or pause.is_on:
        return list(hits)
    ids = [hit.block_id for hit in hits[:_MAX_RERANKED]]
    request = ranker_request(question, vector, ids)
    ranking_request = request.model_copy(
        update={"semantic_configuration": SEMANTIC_CONFIGURATION, "semantic_query": question}
    )
    try:
        # Returns the ids and scores of hits whose permissions were already checked.
        page = await index.candidates(ranking_request)
    except GroundworkError as failed:
        pause.begin(failed.code)
        return list(hits)
    read = {str(row["block_id"]): row.get(_RERANKER_SCORE) for row in page.rows}
    scores = {block_id: float(score) for block_id, score in read.items() if score is not None}
    if not scores:
        pause.begin("no_scores")
        return list(hits)
    # Hits without a ranker score come last, because ranker scores are at least 0.
    ordered = sorted(hits, key=lambda hit: -scores.get(hit.block_id, -1.0))
    fused = sorted((hit.score for hit in hits), reverse=True)
    return [hit.model_copy(update={"score": score}) for hit, score in zip(ordered, fused, strict=True)]
