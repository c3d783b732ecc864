"""Reranking (R6): a model scores passages for a question. Whatever it does, no hit is lost or added."""

from collections.abc import Sequence

from shared.core.prompts import element
from shared.core.relevance import best_first, numbered_passages, scores_by_block
from shared.errors import DependencyError, ModelFixableError
from shared.models.prompts import CallLimits, Prompt
from shared.models.relevance import PassageScores
from shared.models.search import Hit
from shared.ports import ChatModel
from shared.retrieval.prompt_files import load
from shared.retrieval.together import together
from shared.telemetry import get_logger

BATCH = 20  # passages of one call: 10,000 tokens at most; scores are absolute, so batches can be merged


async def rerank(query: str, hits: Sequence[Hit], chat_model: ChatModel, limits: CallLimits) -> list[Hit]:
    """The same hits, best first by the model's scores; in their own order when the model fails.

    `Hit.score` stays what retrieval measured: confidence is judged on that scale.
    """
    try:
        return best_first(hits, await score_passages(query, hits, chat_model, limits))
    except (DependencyError, ModelFixableError) as failed:
        get_logger().warning("rerank.failed", error_type=failed.code, result_count=len(hits))
        return list(hits)


async def score_passages(
    query: str, hits: Sequence[Hit], chat_model: ChatModel, limits: CallLimits
) -> dict[str, int]:
    """Block id -> 0-10; blocks that the model passed over are left out. Batches are asked together.

    Raises:
        DependencyError, ModelFixableError: the model failed for a batch.
    """

    async def ask(start: int) -> PassageScores:
        passages = numbered_passages(hits[start : start + BATCH], first=start + 1)
        user = f"{element('question', query)}\n{passages}"
        return await chat_model.parse(
            Prompt(name="rerank", system=load("rerank"), user=user), PassageScores, limits
        )

    answers = await together(ask(start) for start in range(0, len(hits), BATCH))
    return scores_by_block(hits, (item for answer in answers for item in answer.scores))
