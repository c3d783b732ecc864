"""Execution of planned calls and rendering of their results, the same for every agent.

Blocks are rendered as `<documents>`, as in the first prompt, and each only once; everything else is JSON.
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
from shared.runs.provenance import NOTHING_USED, Provenance
from shared.tools.base import Found, Tool, ToolResult, failure
from shared.tools.read_pages import ReadPages
from shared.tools.tool_calls import PlannedCall, observation
from shared.tools.workspace_tools import reads_files

# Fraction of the best score. Usually one block is far above the rest: in multi-step questions the relevant
# passage scores 0.65 to 0.8, merely similar ones 0.2 to 0.35.
_NEAR_BEST = 0.5
NOTHING_NEW = "Nothing that was not shown before."
_SHOWN_BEFORE = "shown before"
_NO_ROOM = "no room in this result; read these pages again"
_COUNTS = ("result_count", "count", "document_count", "row_count")


@dataclass(frozen=True)
class Called:
    """A call and its result. `provenance` covers everything that the tool read, shown or not."""

    planned: PlannedCall
    result: ToolResult
    found: Found = field(default_factory=Found)
    duration_ms: int = 0
    provenance: Provenance = NOTHING_USED

    @property
    def count(self) -> int | None:
        """The number of items in a successful result; None if it doesn't count items."""
        return next((self.result[name] for name in _COUNTS if name in self.result), None)

    @property
    def event(self) -> ToolResultEvent:
        """The event shown to readers of the run."""
        name, result = self.planned.call.name, self.result
        if not result["success"]:
            return ToolResultEvent(tool=name, success=False, error_type=result["type"], error=result["error"])
        return ToolResultEvent(tool=name, success=True, result_count=self.count, sql=result.get("sql"))


async def carry_out(planned: PlannedCall, bind: Callable[[str, Found], Tool], limit_s: float) -> Called:
    """Execute a call unless it was refused. Failures of the tool are returned, never raised.

    Args:
        bind: returns the tool with a given name, which adds its evidence to the second argument.
    """
    if planned.refused is not None:
        return Called(planned, planned.refused.result)
    found, began = Found(), time.perf_counter()
    tool = bind(planned.call.name, found)
    try:
        async with asyncio.timeout(limit_s):
            result = await tool.execute(**(planned.arguments or {}))
    except TimeoutError:
        result = failure(CallTimeoutError(f"{planned.call.name} took longer than its limit."))
    if reads_files(planned):
        found.obstacles.append("workspace")
    elif not tool.reports_documents:
        found.obstacles.append("tool")
    return Called(
        planned, result, found, round((time.perf_counter() - began) * 1000), provenance=found.provenance
    )


def rendered(
    outcome: Called, known_blocks: Collection[str], records: Mapping[str, DocumentRecord], max_chars: int
) -> tuple[str, list[Hit]]:
    """Return the result as text for the model, and the blocks in it that are new to the model.

    Omitted blocks are marked in pages read in order.

    Args:
        known_blocks: ids of blocks that the model has seen.
        records: known records of the blocks' documents.
    """
    hits = outcome.found.hits
    least = _NEAR_BEST * max((hit.score for hit in hits), default=0.0)
    titles = {doc_id: record.title for doc_id, record in records.items()}
    telling = [hit for hit in hits if not hit.is_heading(titles.get(hit.doc_id, ""))] or hits
    fresh = within(
        [hit for hit in telling if hit.score >= least and hit.block_id not in known_blocks], max_chars
    )
    if not hits:
        return observation(outcome.result, max_chars), []
    if outcome.planned.call.name == ReadPages.name:
        block_ids = {hit.block_id for hit in fresh}
        omitted = {
            hit.block_id: _SHOWN_BEFORE if hit.block_id in known_blocks else _NO_ROOM
            for hit in telling
            if hit.block_id not in block_ids
        }
        text = documents_with_blocks(telling, records, omitted=omitted)
    else:
        text = documents_with_blocks(fresh, records) if fresh else NOTHING_NEW
    return "\n".join((text, *outcome.result.get("hints", ()))), fresh


def within(hits: Sequence[Hit], max_chars: int) -> list[Hit]:
    """Return as many hits, best first, as fit into one result, but at least one."""
    selection: list[Hit] = []
    chars = 0
    for hit in hits:
        chars += len(hit.content or hit.image_caption or "")
        if selection and chars > max_chars:
            break
        selection.append(hit)
    return selection


async def described(
    hits: Iterable[Hit],
    known_records: Mapping[str, DocumentRecord],
    documents: DocumentSearch,
    limit_s: float | None = None,
) -> dict[str, DocumentRecord]:
    """Return the known records and those of the hits' other documents, by doc_id.

    If these can't be read in time, only the known ones are returned.
    """
    unknown = {hit.doc_id for hit in hits} - known_records.keys()
    if not unknown:
        return dict(known_records)
    try:
        async with asyncio.timeout(limit_s):
            return {**known_records, **await documents.get_many(sorted(unknown))}
    except (GroundworkError, TimeoutError) as failed:
        get_logger().warning("documents.metadata_late", error_type=type(failed).__name__)
        return dict(known_records)
