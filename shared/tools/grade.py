"""The tool `grade`: which of the found blocks help to answer a question."""

from shared.retrieval.reranking import grade_passages
from shared.tools.base import BlockIds, BlockJudge, Parameters, Query, ToolResult, named_block


class GradeParameters(Parameters):
    """Arguments of `grade`."""

    query: Query
    block_ids: BlockIds


class Grade(BlockJudge):
    """Reads the blocks again with the rights of the user of `blocks`, and has the model grade them."""

    name = "grade"
    description = "Sort out found blocks that do not help to answer a question; returns those that do."
    parameters = GradeParameters

    async def _run(self, arguments: GradeParameters) -> ToolResult:
        hits = await self.blocks.get_many(arguments.block_ids)
        kept = await grade_passages(arguments.query, hits, self.chat_model, self.limits)
        return {
            "results": [named_block(hit) for hit in kept],
            "result_count": len(kept),
            "graded_count": len(hits),
        }
