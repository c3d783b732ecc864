"""Retrieves the initial passages for a sub-agent's task, before its first model call.

If the task's documents fit the budget, they are read completely, no search is needed, and the report follows
at once. Otherwise each document contributes its best passages. Profiles that read through documents get half
of their passages spread evenly over the documents.
"""

import asyncio
import time
from collections.abc import Sequence

from shared.answering.budget import max_tokens_of
from shared.answering.passages import (
    by_document,
    fitting,
    in_turns,
    size_tokens,
    spread,
    thinned,
)
from shared.answering.subagent_budget import opening_tokens, tool_limit_s
from shared.answering.subagent_context import SubagentContext
from shared.platform.concurrency import run_together
from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.retrieval.block_reading import BlockLookup, DocumentBlocks
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import Hit
from shared.runs.events import ToolResultEvent, ToolStartedEvent
from shared.runs.models import ToolUse
from shared.tools.registry import Binding
from shared.tools.semantic_search import SemanticSearch

# Maximum number of passages. They take about 8,000 tokens, which is the space for them if the report is
# written immediately.
_BLOCKS = 24
# Minimum number of passages per document, however many documents there are.
_FEWEST_OF_EACH = 6
# Stored sizes assume 3.6 characters per token, but prompt limits assume 3.
_SIZE_MARGIN = 1.25


async def open_task(context: SubagentContext) -> None:
    """Retrieve the initial passages of a task and store them in the sub-agent's state.

    Raises:
        DependencyError: a search failed or timed out.
    """
    if SemanticSearch.name not in context.tools:
        return
    await context.send(
        [ToolStartedEvent(tool=SemanticSearch.name, arguments={"query": context.task.question})]
    )
    began = time.perf_counter()
    use = ToolUse(turn=context.turn.turn, tool=SemanticSearch.name, success=True)
    limit_s = tool_limit_s(context.remaining_s, context.services.settings.answering.retrieval_timeout_s)
    try:
        async with asyncio.timeout(limit_s):
            use = use.model_copy(update={"result_count": await _find(context)})
    except TimeoutError:
        use = use.model_copy(update={"success": False, "error_type": CallTimeoutError.code})
        raise CallTimeoutError("A sub-agent's search timed out.") from None
    except GroundworkError as failed:
        use = use.model_copy(update={"success": False, "error_type": failed.code})
        raise
    finally:
        use = use.model_copy(update={"duration_ms": round((time.perf_counter() - began) * 1000)})
        context.update_state(tool_uses=(*context.state.tool_uses, use))
        ended = ToolResultEvent(
            tool=use.tool, success=use.success, result_count=use.result_count, error_type=use.error_type
        )
        await context.send([ended])


async def _find(context: SubagentContext) -> int:
    """Retrieve the initial passages, add them to the state, and return their number."""
    binding = Binding(context.services, context.request.user, context.filters())
    documents = DocumentSearch(binding.documents)
    targets = await documents.get_many(list(context.task.doc_ids))
    hits = await _whole(context, binding, list(targets)) if targets else []
    is_covered = bool(hits)
    if not hits and (targets or not context.task.doc_ids):
        # If the user has lost access to all documents of the task, other documents must not replace them.
        hits = await _nearest(context, binding, list(targets))
    others = await documents.get_many(sorted({hit.doc_id for hit in hits} - targets.keys()))
    context.add_evidence(hits, [*targets.values(), *others.values()])
    context.update_state(opening_count=len(context.state.hits), is_covered=is_covered)
    return len(hits)


async def _whole(context: SubagentContext, binding: Binding, targets: Sequence[str]) -> list[Hit]:
    """Return all blocks of the target documents, or an empty list if they don't fit into the prompt of the
    report.
    """
    blocks = await _sizes(binding, targets)
    if sum(size for _, size in blocks) * _SIZE_MARGIN > _room(context, closing=True):
        return []
    return await BlockLookup(binding.blocks).get_many([block_id for block_id, _ in blocks])


async def _nearest(context: SubagentContext, binding: Binding, targets: Sequence[str]) -> list[Hit]:
    """Return the passages that best match the question, including those that the main agent already found."""
    room = _room(context, closing=context.turn.closing)
    queries = list(dict.fromkeys((context.task.question, *context.task.phrasings)))
    earlier = await BlockLookup(binding.blocks).get_many(context.task.known_blocks)
    if not targets:
        return fitting(in_turns([earlier, await binding.block_search().search(queries, _BLOCKS, {})]), room)
    share = max(_FEWEST_OF_EACH, _BLOCKS // len(targets))
    searched = await run_together(
        *(binding.block_search().search(queries, share, {"doc_id": doc_id}) for doc_id in targets)
    )
    nearest = in_turns([*searched, *by_document(earlier)])
    if not context.profile.reads_through:
        return fitting(nearest, room)
    near = fitting(nearest, room // 2)
    far = await _everywhere(binding, targets, room // 2, {hit.block_id for hit in near})
    return sorted(
        [*near, *thinned(far, room - size_tokens(near))], key=lambda hit: (hit.doc_id, hit.page_number or 0)
    )


async def _everywhere(
    binding: Binding, targets: Sequence[str], tokens: int, shown_ids: set[str]
) -> list[Hit]:
    """Return passages spread evenly over the documents, about as many as fit into `tokens`. Passages in
    `shown_ids` are left out.
    """
    blocks = await _sizes(binding, targets)
    average = max(sum(size for _, size in blocks) // max(len(blocks), 1), 1)
    block_ids = [blocks[place][0] for place in spread(len(blocks), max(tokens // average, 1))]
    passages = await BlockLookup(binding.blocks).get_many(block_ids)
    return [hit for hit in passages if hit.block_id not in shown_ids]


async def _sizes(binding: Binding, targets: Sequence[str]) -> list[tuple[str, int]]:
    """Return the ids and sizes in tokens of all blocks of the documents, in reading order."""
    contents = DocumentBlocks(binding.blocks)
    return [
        block
        for document_blocks in await run_together(*map(contents.sizes, targets))
        for block in document_blocks
    ]


def _room(context: SubagentContext, *, closing: bool) -> int:
    """Return the number of tokens that passages may take in the next prompt."""
    bare = max_tokens_of([context.system, context.message()])
    return opening_tokens(context.budget.max_tokens, bare, closing=closing)
