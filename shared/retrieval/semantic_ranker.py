"""The service's own semantic ranker, if it has one and a setting says so. Without its answer nothing is lost.

It reads the best 50 blocks once more, as a person would, and says how well each answers the question. Its
scores take the place of the fused ones, in the order and in the hits.
"""

from collections.abc import Sequence

from shared.core.confidence import reranked_share
from shared.core.index_schema import SEMANTIC_CONFIGURATION
from shared.errors import GroundworkError
from shared.models.search import Hit, SearchPage
from shared.retrieval.block_requests import SCORE_OF_RANKER, by_words_and_meaning
from shared.retrieval.secured_index import SecuredIndex
from shared.telemetry import get_logger

_MOST = 50  # the service reranks no more


async def semantically_ranked(
    index: SecuredIndex, question: str, vector: tuple[float, ...], hits: Sequence[Hit]
) -> list[Hit]:
    """The same hits, those that the ranker scored first, best first; as they were when it does not answer.

    A service without the ranker, or one whose quota is used up, refuses the query or leaves the scores out.
    """
    if not hits:
        return []
    ids = [hit.block_id for hit in hits[:_MOST]]
    request = by_words_and_meaning(question, vector, ids)
    asked = request.model_copy(
        update={"semantic_configuration": SEMANTIC_CONFIGURATION, "semantic_query": question}
    )
    try:
        scores = _scores(await index.search(asked))
    except GroundworkError as failed:
        get_logger().warning("search.not_reranked", error_type=failed.code)
        return list(hits)
    # Blocks that it passed over keep their order, and a score below every one that it read.
    least = min(scores.values(), default=1.0)
    scored = [
        hit.model_copy(update={"score": scores.get(hit.block_id, min(hit.score, least))}) for hit in hits
    ]
    return sorted(scored, key=lambda hit: (hit.block_id not in scores, -hit.score)) if scores else list(hits)


def _scores(page: SearchPage) -> dict[str, float]:
    return {
        str(row["block_id"]): round(reranked_share(float(row[SCORE_OF_RANKER])), 6)
        for row in page.rows
        if row.get(SCORE_OF_RANKER) is not None
    }
