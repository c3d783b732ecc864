"""Carries out planned calls and renders their results as a model reads them: the same for every agent.

Blocks are shown as `<documents>`, as those of the first search, and each only once; everything else as JSON.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shared.evidence.document_prompt import documents_with_blocks
from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.platform.telemetry import get_logger
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.events import ToolResultEvent
from shared.tools.base import Found, Tool, ToolResult, failure
from shared.tools.read_pages import ReadPages
from shared.tools.tool_calls import PlannedCall, observation

# Of the best score. A search for one thing finds it, and ten others far below: in questions of several steps
# the passage asked for scores 0.65 to 0.8, what only looks alike 0.2 to 0.35.
_NEAR_BEST = 0.5
NOTHING_NEW = "Nothing that was not shown before."
_SHOWN_BEFORE = "shown before"
_NO_ROOM = "no room in this result; read these pages again"
_COUNTS = ("result_count", "count", "document_count", "row_count")


@dataclass(frozen=True)
class Called:
    """A call and what it brought."""

    planned: PlannedCall
    result: ToolResult
    found: Found = field(default_factory=Found)
    duration_ms: int = 0

    @property
    def count(self) -> int | None:
        """How many things a success counts; None when it counts nothing."""
        return next((self.result[name] for name in _COUNTS if name in self.result), None)

    @property
    def event(self) -> ToolResultEvent:
        """As readers of the run see it."""
        name, result = self.planned.call.name, self.result
        if not result["success"]:
            return ToolResultEvent(tool=name, success=False, error_type=result["type"], error=result["error"])
        return ToolResultEvent(tool=name, success=True, result_count=self.count, sql=result.get("sql"))


async def carry_out(planned: PlannedCall, bind: Callable[[str, Found], Tool], limit_s: float) -> Called:
    """Make a call, unless it is refused. Never raises for what a tool does.

    Args:
        bind: gives the tool of a name, which notes what it finds.
    """
    if planned.refused is not None:
        return Called(planned, planned.refused.result)
    found, began = Found(), time.perf_counter()
    try:
        async with asyncio.timeout(limit_s):
            result = await bind(planned.call.name, found).execute(**(planned.arguments or {}))
    except TimeoutError:
        result = failure(CallTimeoutError(f"{planned.call.name} took longer than its limit."))
    return Called(planned, result, found, round((time.perf_counter() - began) * 1000))


def rendered(
    called: Called, known: Collection[str], records: Mapping[str, DocumentRecord], max_chars: int
) -> tuple[str, list[Hit]]:
    """The result as the model reads it, and the blocks in it, which it was not shown before.

    Pages that are read in order mark the blocks that are left out.

    Args:
        known: ids of the blocks that it was shown.
        records: documents of the blocks, as far as they are known.
    """
    hits = called.found.hits
    least = _NEAR_BEST * max((hit.score for hit in hits), default=0.0)
    titles = {doc_id: record.title for doc_id, record in records.items()}
    telling = [hit for hit in hits if not hit.is_heading(titles.get(hit.doc_id, ""))] or hits
    fresh = within([hit for hit in telling if hit.score >= least and hit.block_id not in known], max_chars)
    if not hits:
        return observation(called.result, max_chars), []
    if called.planned.call.name == ReadPages.name:
        shown = {hit.block_id for hit in fresh}
        omitted = {
            hit.block_id: _SHOWN_BEFORE if hit.block_id in known else _NO_ROOM
            for hit in telling
            if hit.block_id not in shown
        }
        text = documents_with_blocks(telling, records, omitted=omitted)
    else:
        text = documents_with_blocks(fresh, records) if fresh else NOTHING_NEW
    return "\n".join((text, *called.result.get("hints", ()))), fresh


def within(hits: Sequence[Hit], max_chars: int) -> list[Hit]:
    """As many of the hits, best first, as fit into one result; one at least."""
    kept: list[Hit] = []
    chars = 0
    for hit in hits:
        chars += len(hit.content or hit.image_caption or "")
        if kept and chars > max_chars:
            break
        kept.append(hit)
    return kept


async def described(
    hits: Iterable[Hit],
    known: Mapping[str, DocumentRecord],
    documents: DocumentSearch,
    limit_s: float | None = None,
) -> dict[str, DocumentRecord]:
    """Titles and dates of the documents found, with those known; an agent can do without them."""
    unknown = {hit.doc_id for hit in hits} - known.keys()
    if not unknown:
        return dict(known)
    try:
        async with asyncio.timeout(limit_s):
            return {**known, **await documents.get_many(sorted(unknown))}
    except (GroundworkError, TimeoutError) as failed:
        get_logger().warning("documents.metadata_late", error_type=type(failed).__name__)
        return dict(known)
