"""Execution of planned tool calls, and rendering of their results for the model. All agents share it.

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
from shared.tools.base import Tool, ToolEvidence, ToolResult, failure
from shared.tools.read_pages import ReadPages
from shared.tools.tool_calls import PlannedCall, observation
from shared.tools.workspace_tools import reads_files

# Minimum fraction of the best score. In multi-step questions, the relevant passage usually scores 0.65 to 0.8
# and merely similar ones 0.2 to 0.35.
_NEAR_BEST = 0.5
NOTHING_NEW = "Nothing new: everything relevant was shown before."
_SHOWN_BEFORE = "shown before"
_NO_ROOM = "no room in this result; read these pages again"
_COUNTS = ("result_count", "count", "document_count", "row_count")


@dataclass(frozen=True)
class Called:
    """A completed tool call with its result and evidence. `provenance` covers everything the tool read, even
    content that the model was not shown.
    """

    planned: PlannedCall
    result: ToolResult
    evidence: ToolEvidence = field(default_factory=ToolEvidence)
    duration_ms: int = 0
    provenance: Provenance = NOTHING_USED

    @property
    def count(self) -> int | None:
        """The number of items in a successful result, or None if the result has no count."""
        return next((self.result[name] for name in _COUNTS if name in self.result), None)

    @property
    def event(self) -> ToolResultEvent:
        """The event that reports this call to readers of the run."""
        name, result = self.planned.call.name, self.result
        if not result["success"]:
            return ToolResultEvent(tool=name, success=False, error_type=result["type"], error=result["error"])
        return ToolResultEvent(tool=name, success=True, result_count=self.count, sql=result.get("sql"))


async def execute_call(
    planned: PlannedCall,
    bind: Callable[[str, ToolEvidence], Tool],
    limit_s: float,
    known_blocks: Collection[str] = (),
) -> Called:
    """Execute a call and return its result. Refused calls, tool failures and timeouts become failed results.

    Args:
        bind: creates the tool with a given name, which adds its evidence to the given `ToolEvidence`.
        known_blocks: ids of blocks that the model has seen.
    """
    if planned.refused is not None:
        return Called(planned, planned.refused.result)
    evidence, began = ToolEvidence(known_blocks=known_blocks), time.perf_counter()
    tool = bind(planned.call.name, evidence)
    try:
        async with asyncio.timeout(limit_s):
            result = await tool.execute(**(planned.arguments or {}))
    except TimeoutError:
        result = failure(CallTimeoutError(f"{planned.call.name} took longer than its limit."))
    if reads_files(planned):
        evidence.obstacles.append("workspace")
    elif not tool.reports_documents:
        evidence.obstacles.append("tool")
    return Called(
        planned, result, evidence, round((time.perf_counter() - began) * 1000), provenance=evidence.provenance
    )


def render_result(
    outcome: Called, known_blocks: Collection[str], records: Mapping[str, DocumentRecord], max_chars: int
) -> tuple[str, list[Hit]]:
    """Render a result as text for the model, and return it with the hits that the model has not seen before.

    Blocks that only contain headings and blocks that score far below the best are left out. In the result of
    `read_pages`, omitted blocks are marked.

    Args:
        known_blocks: ids of blocks that the model has seen.
        records: known records of the blocks' documents, by doc_id.
    """
    hits = outcome.evidence.hits
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
    """Return as many of the first hits as fit into `max_chars` characters of text, but at least one if there
    are any.
    """
    selection: list[Hit] = []
    chars = 0
    for hit in hits:
        chars += len(hit.content or hit.image_caption or "")
        if selection and chars > max_chars:
            break
        selection.append(hit)
    return selection


async def describe_documents(
    hits: Iterable[Hit],
    known_records: Mapping[str, DocumentRecord],
    documents: DocumentSearch,
    limit_s: float | None = None,
) -> dict[str, DocumentRecord]:
    """Return document records by doc_id: all of `known_records`, plus newly read records of the other
    documents in `hits`.

    If the others cannot be read within `limit_s` seconds, only the known ones are returned.
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
