"""Grading (R6): a model says which passages help at all. A failing model costs nothing but the sorting."""

from collections.abc import Sequence

from shared.core.prompts import element
from shared.core.relevance import irrelevant_blocks, numbered_passages
from shared.errors import DependencyError, ModelFixableError
from shared.models.prompts import CallLimits, Prompt
from shared.models.relevance import PassageGrades
from shared.models.search import Hit
from shared.ports import ChatModel
from shared.retrieval.prompt_files import load
from shared.retrieval.rerank import BATCH
from shared.retrieval.together import together
from shared.telemetry import get_logger


async def grade(query: str, hits: Sequence[Hit], chat_model: ChatModel, limits: CallLimits) -> list[Hit]:
    """The relevant hits, in their order; all of them when the model fails."""
    try:
        return await grade_passages(query, hits, chat_model, limits)
    except (DependencyError, ModelFixableError) as failed:
        get_logger().warning("grade.failed", error_type=failed.code, result_count=len(hits))
        return list(hits)


async def grade_passages(
    query: str, hits: Sequence[Hit], chat_model: ChatModel, limits: CallLimits
) -> list[Hit]:
    """The relevant hits, in their order; one that the model passed over is kept.

    Raises:
        DependencyError, ModelFixableError: the model failed for a batch.
    """

    async def ask(start: int) -> PassageGrades:
        passages = numbered_passages(hits[start : start + BATCH], first=start + 1)
        user = f"{element('question', query)}\n{passages}"
        return await chat_model.parse(
            Prompt(name="grade", system=load("grade"), user=user), PassageGrades, limits
        )

    answers = await together(ask(start) for start in range(0, len(hits), BATCH))
    dropped = irrelevant_blocks(hits, (item for answer in answers for item in answer.grades))
    return [hit for hit in hits if hit.block_id not in dropped]
