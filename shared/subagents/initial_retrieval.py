"""The first passages of a sub-agent's task, before its model is asked anything.

Each document of the task is represented. A document that fits into the budget whole is read whole: then there
is nothing to look for, and the report follows at once. Of a longer one a profile that reads through gets the
nearest passages and others evenly from its beginning to its end.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from shared.platform.concurrency import run_together
from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.platform.language_models.models import CallLimits, Embedder
from shared.retrieval.blocks import BlockLookup, BlockSearch, DocumentBlocks
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord, Hit
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.models import ToolUse
from shared.subagents.budget import opening_tokens, tokens_of, tool_limit_s
from shared.subagents.passages import (
    by_document,
    fitting,
    in_turns,
    size_tokens,
    spread,
    task_message,
    thinned,
)
from shared.subagents.turn_context import TurnContext


class Searches:
    """Every index bound to the user of the run, who is no argument of anything that a model can fill in."""

    def __init__(self, context: TurnContext) -> None:
        services, user = context.services, context.request.user
        self.limit_s = tool_limit_s(context.remaining_s, services.settings.answering.retrieval_timeout_s)
        # Tried again as a turn is, not below: the deadline is near.
        self.limits = CallLimits(
            timeout_s=min(self.limit_s, services.settings.search.timeout_s), max_retries=0
        )
        content = SecuredIndex(services.content_index, user)
        documents = SecuredIndex(services.documents_index, user)
        self.blocks = BlockSearch(
            content,
            _OncePerText(services.embedder),
            self.limits,
            documents,
            semantic_ranker=services.settings.search.semantic_ranker,
        )
        self.lookup = BlockLookup(content)
        self.contents = DocumentBlocks(content)
        self.documents = DocumentSearch(documents)

    @asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """One limit for all searches of one call.

        Raises:
            CallTimeoutError: it passed.
        """
        try:
            async with asyncio.timeout(self.limit_s):
                yield
        except TimeoutError:
            raise CallTimeoutError("A search of a sub-agent did not finish in time.") from None


class _OncePerText(Embedder):
    """Embeds each text once, however many searches ask for it at the same time: one for each document."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[tuple[str, ...], list[tuple[float, ...]]] = {}
        self._asking = asyncio.Lock()

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str], limits: CallLimits) -> list[tuple[float, ...]]:
        async with self._asking:
            if tuple(texts) not in self._known:
                self._known[tuple(texts)] = await self._embedder.embed(texts, limits)
        return self._known[tuple(texts)]


_BLOCKS = 24  # asked for at once: about what 8,000 tokens leave room for when a report follows at once
_FEWEST_OF_EACH = 6  # of each document, when there are many
_NEAREST_SHARE = 0.5  # of the room; the rest goes to passages from everywhere (unmeasured)
_SIZE_MARGIN = 1.25  # sizes are counted at 3.6 characters a token, prompts at 3


@dataclass(frozen=True)
class _Room:
    """Tokens for passages: when the report follows at once, and as it is here."""

    whole: int
    now: int


@dataclass(frozen=True)
class _Found:
    hits: list[Hit]
    is_covered: bool = False


async def open_task(context: TurnContext) -> None:
    """Find the first passages, and note them.

    Raises:
        DependencyError: a search failed, or took too long.
    """
    if "retrieve_documents" not in context.tools:
        return
    await context.events.tool_started("retrieve_documents", {"query": context.task.question})
    began = time.perf_counter()
    use = ToolUse(turn=context.turn.turn, tool="retrieve_documents", success=True)
    try:
        count = await _find(context)
    except GroundworkError as failed:
        use = use.model_copy(update={"success": False, "error_type": failed.code})
        raise
    else:
        use = use.model_copy(update={"result_count": count})
    finally:
        duration_ms = round((time.perf_counter() - began) * 1000)
        use = use.model_copy(update={"duration_ms": duration_ms})
        context.change(tool_uses=(*context.state.tool_uses, use))
        await context.events.tool_ended(use)


async def _find(context: TurnContext) -> int:
    """Look for them, and note them; how many were found."""
    searches = Searches(context)
    room = _room(context)
    async with searches.deadline():
        targets = await _targets(context, searches)
        if targets and context.profile.reads_through:
            found = await _through(context, searches, list(targets), room)
        else:
            found = await _nearest(context, searches, list(targets), room)
        unknown = {hit.doc_id for hit in found.hits} - targets.keys()
        others = await searches.documents.get_many(sorted(unknown))
    context.add(found.hits, [*targets.values(), *others.values()])
    context.transcript = context.transcript.model_copy(
        update={"opening_count": len(context.state.hits), "is_covered": found.is_covered}
    )
    return len(found.hits)


def _room(context: TurnContext) -> _Room:
    bare = tokens_of([context.system, task_message(context.task.question, [], [], {}, then="work")])
    budget = context.task.budget
    whole = opening_tokens(budget, bare, closing=True)
    return _Room(whole, whole if context.turn.closing else opening_tokens(budget, bare, closing=False))


async def _targets(context: TurnContext, searches: Searches) -> dict[str, DocumentRecord]:
    """The documents of the task that the asker may read and that are within the task's project."""
    project_id = context.filters().get("project_id")
    known = await searches.documents.get_many([one for one in context.task.doc_ids if one in context.scope])
    return {
        doc_id: record
        for doc_id, record in known.items()
        if project_id is None or record.project_id == project_id
    }


async def _nearest(context: TurnContext, searches: Searches, targets: list[str], room: _Room) -> _Found:
    question = context.task.question
    if not targets:
        # Documents of a task that cannot be read any more leave nothing to search in.
        hits = (
            []
            if context.task.doc_ids
            else await searches.blocks.search([question], _BLOCKS, context.filters())
        )
        return _Found(fitting(hits, room.now))
    share = max(_FEWEST_OF_EACH, _BLOCKS // len(targets))
    found = await run_together(
        *(searches.blocks.search([question], share, context.filters([doc_id])) for doc_id in targets)
    )
    hits = in_turns(found)
    # Fewer than were asked for: the document has no others.
    is_covered = all(len(of_one) < share for of_one in found) and size_tokens(hits) <= room.whole
    return _Found(fitting(hits, room.whole if is_covered else room.now), is_covered)


async def _through(context: TurnContext, searches: Searches, targets: list[str], room: _Room) -> _Found:
    sizes = await run_together(*(searches.contents.sizes(doc_id) for doc_id in targets))
    blocks = [block for of_one in sizes for block in of_one]
    if sum(size for _, size in blocks) * _SIZE_MARGIN <= room.whole:
        hits = await searches.lookup.get_many([block_id for block_id, _ in blocks])
        return _Found(hits, is_covered=True)
    average = max(sum(size for _, size in blocks) // len(blocks), 1)
    count = max(int(room.now * (1 - _NEAREST_SHARE)) // average, 1)
    wanted = [blocks[place][0] for place in spread(len(blocks), count)]
    nearest, everywhere = await run_together(
        searches.blocks.search([context.task.question], _BLOCKS, context.filters(targets)),
        searches.lookup.get_many(wanted),
    )
    near = fitting(in_turns(by_document(nearest)), int(room.now * _NEAREST_SHARE))
    known = {hit.block_id for hit in near}
    far = [hit for hit in everywhere if hit.block_id not in known]
    hits = [*near, *thinned(far, room.now - size_tokens(near))]
    return _Found(sorted(hits, key=lambda hit: (hit.doc_id, hit.page_number or 0)))
