"""The first passages of a sub-agent's task, before its model is asked anything.

Documents of the task that fit into the budget whole are read whole: then there is nothing to look for, and
the report follows at once. Of longer ones each gets its nearest passages; a profile that reads through gets
half of its passages evenly from their beginning to their end.
"""

import asyncio
import time
from collections.abc import Sequence

from shared.answering.budget import opening_tokens, tokens_of, tool_limit_s
from shared.answering.passages import (
    by_document,
    fitting,
    in_turns,
    size_tokens,
    spread,
    thinned,
)
from shared.answering.subagent_context import TurnContext
from shared.platform.concurrency import run_together
from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.retrieval.blocks import BlockLookup, DocumentBlocks
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import Hit
from shared.runs.models import ToolUse
from shared.tools.registry import Binding
from shared.tools.semantic_search import SemanticSearch

_BLOCKS = 24  # asked for at once: about what 8,000 tokens leave room for when a report follows at once
_FEWEST_OF_EACH = 6  # of each document, when there are many
_SIZE_MARGIN = 1.25  # sizes are counted at 3.6 characters a token, prompts at 3


async def open_task(context: TurnContext) -> None:
    """Find the first passages, and note them.

    Raises:
        DependencyError: a search failed, or took too long.
    """
    if SemanticSearch.name not in context.tools:
        return
    await context.tell_call(SemanticSearch.name, {"query": context.task.question})
    began = time.perf_counter()
    use = ToolUse(turn=context.turn.turn, tool=SemanticSearch.name, success=True)
    limit_s = tool_limit_s(context.remaining_s, context.services.settings.answering.retrieval_timeout_s)
    try:
        async with asyncio.timeout(limit_s):
            use = use.model_copy(update={"result_count": await _find(context)})
    except TimeoutError:
        use = use.model_copy(update={"success": False, "error_type": CallTimeoutError.code})
        raise CallTimeoutError("A search of a sub-agent did not finish in time.") from None
    except GroundworkError as failed:
        use = use.model_copy(update={"success": False, "error_type": failed.code})
        raise
    finally:
        use = use.model_copy(update={"duration_ms": round((time.perf_counter() - began) * 1000)})
        context.change(tool_uses=(*context.state.tool_uses, use))
        await context.tell_use(use)


async def _find(context: TurnContext) -> int:
    """Look for them, and note them; how many were found."""
    binding = Binding(context.services, context.request.user, context.filters())
    documents = DocumentSearch(binding.documents)
    targets = await documents.get_many(list(context.task.doc_ids))
    hits = await _whole(context, binding, list(targets)) if targets else []
    is_covered = bool(hits)
    if not hits and (targets or not context.task.doc_ids):
        # Documents of a task that cannot be read any more leave nothing to search in.
        hits = await _nearest(context, binding, list(targets))
    others = await documents.get_many(sorted({hit.doc_id for hit in hits} - targets.keys()))
    context.add(hits, [*targets.values(), *others.values()])
    context.change(opening_count=len(context.state.hits), is_covered=is_covered)
    return len(hits)


async def _whole(context: TurnContext, binding: Binding, targets: Sequence[str]) -> list[Hit]:
    """All that the documents hold, if the report has room for it; else nothing."""
    blocks = await _sizes(binding, targets)
    if sum(size for _, size in blocks) * _SIZE_MARGIN > _room(context, closing=True):
        return []
    return await BlockLookup(binding.blocks).get_many([block_id for block_id, _ in blocks])


async def _nearest(context: TurnContext, binding: Binding, targets: Sequence[str]) -> list[Hit]:
    """Passages that fit the question best, those that were found for it before among them."""
    room = _room(context, closing=context.turn.closing)
    queries = list(dict.fromkeys((context.task.question, *context.task.phrasings)))
    known = await BlockLookup(binding.blocks).get_many(context.task.known_blocks)
    if not targets:
        return fitting(in_turns([known, await binding.block_search().search(queries, _BLOCKS, {})]), room)
    share = max(_FEWEST_OF_EACH, _BLOCKS // len(targets))
    found = await run_together(
        *(binding.block_search().search(queries, share, {"doc_id": doc_id}) for doc_id in targets)
    )
    nearest = in_turns([*found, *by_document(known)])
    if not context.profile.reads_through:
        return fitting(nearest, room)
    near = fitting(nearest, room // 2)
    far = await _everywhere(binding, targets, room // 2, {hit.block_id for hit in near})
    return sorted(
        [*near, *thinned(far, room - size_tokens(near))], key=lambda hit: (hit.doc_id, hit.page_number or 0)
    )


async def _everywhere(binding: Binding, targets: Sequence[str], tokens: int, shown: set[str]) -> list[Hit]:
    """About as many passages as fit, evenly from the beginning of the documents to their end."""
    blocks = await _sizes(binding, targets)
    average = max(sum(size for _, size in blocks) // max(len(blocks), 1), 1)
    wanted = [blocks[place][0] for place in spread(len(blocks), max(tokens // average, 1))]
    found = await BlockLookup(binding.blocks).get_many(wanted)
    return [hit for hit in found if hit.block_id not in shown]


async def _sizes(binding: Binding, targets: Sequence[str]) -> list[tuple[str, int]]:
    """Each block of the documents with its tokens, in reading order."""
    contents = DocumentBlocks(binding.blocks)
    return [block for of_one in await run_together(*map(contents.sizes, targets)) for block in of_one]


def _room(context: TurnContext, *, closing: bool) -> int:
    """Tokens for passages."""
    bare = tokens_of([context.system, context.message()])
    return opening_tokens(context.task.budget, bare, closing=closing)
