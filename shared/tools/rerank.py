"""The tool `rerank`: orders found blocks by how well they answer a question."""

from pydantic import Field

from shared.retrieval.reranking import MAX_SCORE, best_first, score_passages
from shared.tools.base import BlockIds, BlockJudge, Parameters, Query, ToolResult, named_block


class RerankParameters(Parameters):
    """Arguments of `rerank`."""

    query: Query
    block_ids: BlockIds
    top_k: int = Field(default=10, description="How many of the best to return, 1-50.")


class Rerank(BlockJudge):
    """Reads the blocks again with the rights of the user of `blocks`, and has the model score them."""

    name = "rerank"
    description = (
        "Order found blocks by how well each answers a question, with a relevance from 0 to 1. "
        "Worth it when a search found many blocks of about the same score."
    )
    parameters = RerankParameters

    async def _run(self, arguments: RerankParameters) -> ToolResult:
        hits = await self.blocks.get_many(arguments.block_ids)
        scores = await score_passages(arguments.query, hits, self.chat_model, self.limits)
        best = best_first(hits, scores)[: max(arguments.top_k, 1)]
        # A block that the model passed over has no score.
        relevance = {block_id: score / MAX_SCORE for block_id, score in scores.items()}
        results = [{**named_block(hit), "relevance": relevance.get(hit.block_id)} for hit in best]
        return {"results": results, "result_count": len(results)}
