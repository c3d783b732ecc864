"""Refining evidence that retrieval is not sure of: a model orders it, and sorts out what does not help."""

from collections.abc import Callable

from shared.models.prompts import CallLimits
from shared.models.working import Evidence
from shared.ports import ChatModel
from shared.retrieval.grade import grade
from shared.retrieval.rerank import rerank

FEWEST_KEPT = 3  # whether these hold an answer is for its writer to say; unmeasured


async def refine(
    question: str, evidence: Evidence, chat_model: ChatModel, limits: Callable[[], CallLimits]
) -> Evidence:
    """The evidence, best first; a model that fails leaves it as it was.

    Args:
        limits: of a call that begins now; there are two, one after the other.
    """
    ranked = await rerank(question, evidence.hits, chat_model, limits())
    helpful = await grade(question, ranked, chat_model, limits())
    kept = {hit.block_id for hit in (*helpful, *ranked[:FEWEST_KEPT])}
    hits = tuple(hit for hit in ranked if hit.block_id in kept)
    shown = {hit.doc_id for hit in hits}
    records = tuple(record for record in evidence.records if record.doc_id in shown)
    return evidence.model_copy(update={"hits": hits, "records": records})
