"""Derives the answer that readers have received from the events of a run. Pure."""

import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence

from shared.evidence.models import Citation
from shared.runs.events import (
    CitationEvent,
    DiscardedStatus,
    RunEvent,
    StepStatus,
    TokenEvent,
    withdraws_step,
)
from shared.runs.models import RunAnswer

RecordDocuments = Callable[[Iterable[str]], Awaitable[None]]
"""Records the ids of documents in the audit trail. Never raises for a failing trail."""


def correction(events: Sequence[RunEvent], answer: RunAnswer, step: int) -> list[RunEvent]:
    """Return the events that replace the text shown to readers with the text of the answer, or no events if
    the texts are equal.

    Args:
        events: the journal up to now.
        step: the step that shows the answer. The text of all other steps is withdrawn.
    """
    if shown_text(events) == answer.text:
        return []
    others = [other for other, text in _texts(events).items() if text and other != step]
    return _announcement(answer, step, others)


def shown_text(events: Iterable[RunEvent]) -> str:
    """Return the answer text that readers have received, without parts that were withdrawn."""
    return "".join(text for _, text in sorted(_texts(events).items()))


def _texts(events: Iterable[RunEvent]) -> dict[int, str]:
    """Return the text that readers have received from each step, by step number."""
    texts: dict[int, str] = {}
    for event in events:
        if isinstance(event, TokenEvent):
            texts[event.step] = texts.get(event.step, "") + event.text
        elif withdraws_step(event):
            texts.pop(event.step, None)
    return texts


def shown_citations(events: Iterable[RunEvent]) -> list[Citation]:
    """Return the citations that readers have received, without those that were withdrawn."""
    citations_by_step: dict[int, list[Citation]] = {}
    for event in events:
        if isinstance(event, CitationEvent):
            citations_by_step.setdefault(event.step, []).append(event.citation)
        elif withdraws_step(event):
            citations_by_step.pop(event.step, None)
    return [citation for of_step in citations_by_step.values() for citation in of_step]


def _announcement(answer: RunAnswer, step: int, others: Sequence[int]) -> list[RunEvent]:
    return [
        *(DiscardedStatus(step=other) for other in others),
        StepStatus(step=step, state="restarted", attempt=uuid.uuid4().hex[:8]),
        *(CitationEvent.of(citation, step) for citation in answer.citations),
        TokenEvent(step=step, text=answer.text),
    ]
