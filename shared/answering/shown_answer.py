"""Keeping readers and storage in step: what stands in the log as an answer is the answer that is stored.

Two attempts at one step may both write an answer, and the first to store its own wins. An attempt that
finds, after storing or before using an answer, that readers have seen another one, withdraws that and shows
the right one, all in one append.
"""

import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence

from shared.evidence.models import Citation
from shared.platform.errors import ConflictError
from shared.runs.event_log import RunClosedError
from shared.runs.events import (
    CitationEvent,
    DiscardedStatus,
    RunEvent,
    StepStatus,
    TokenEvent,
    events_of,
    is_terminal,
    withdraws_step,
)
from shared.runs.models import RunAnswer
from shared.runs.run_log import RunLog

RecordDocuments = Callable[[Iterable[str]], Awaitable[None]]
"""Records the ids of documents in the audit trail. Never raises for a failing trail."""


async def show_stored(log: RunLog, answer: RunAnswer, step: int, record: RecordDocuments) -> None:
    """Make what readers have of the answer equal the stored one; what differs is shown again by `step`.

    Args:
        record: called with the ids of the cited documents before they are shown.

    Raises:
        RunClosedError: the run has ended.
    """
    while True:
        written = await log.read(answer.run_id)
        events = events_of(written)
        if any(map(is_terminal, events)):
            raise RunClosedError("The run has ended.")
        if shown_text(events) == answer.text:
            return
        await record(citation.doc_id for citation in answer.citations)
        others = [other for other, text in _texts(events).items() if text and other != step]
        try:
            announced = _announcement(answer, step, others)
            await log.append(answer.run_id, announced, at_offset=written.next_offset)
        except ConflictError:
            continue  # somebody wrote meanwhile: look again
        return


def shown_text(events: Iterable[RunEvent]) -> str:
    """The answer's text as a reader has it who drops what was withdrawn."""
    return "".join(text for _, text in sorted(_texts(events).items()))


def _texts(events: Iterable[RunEvent]) -> dict[int, str]:
    """The text that each step shows."""
    texts: dict[int, str] = {}
    for event in events:
        if isinstance(event, TokenEvent):
            texts[event.step] = texts.get(event.step, "") + event.text
        elif withdraws_step(event):
            texts.pop(event.step, None)
    return texts


def shown_citations(events: Iterable[RunEvent]) -> list[Citation]:
    """The citations of all steps, as a reader has them who drops what was withdrawn."""
    shown: dict[int, list[Citation]] = {}
    for event in events:
        if isinstance(event, CitationEvent):
            shown.setdefault(event.step, []).append(event.citation)
        elif withdraws_step(event):
            shown.pop(event.step, None)
    return [citation for of_step in shown.values() for citation in of_step]


def _announcement(answer: RunAnswer, step: int, others: Sequence[int]) -> list[RunEvent]:
    return [
        *(DiscardedStatus(step=other) for other in others),
        StepStatus(step=step, state="restarted", attempt=uuid.uuid4().hex[:8]),
        *(CitationEvent.of(citation, step) for citation in answer.citations),
        TokenEvent(step=step, text=answer.text),
    ]
