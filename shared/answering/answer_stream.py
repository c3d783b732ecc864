"""Batches the text and citation events of an answer, to append them to the run's journal together."""

import time
from dataclasses import dataclass, field

from shared.answering.draft import Draft
from shared.answering.shown_answer import RecordDocuments
from shared.evidence.models import Citation
from shared.runs.event_log import EventLog
from shared.runs.events import CitationEvent, RunEvent, TokenEvent
from shared.runs.models import RunAnswer

FLUSH_SECONDS = 0.15  # minimum interval between appends; each append is a storage request


@dataclass
class AnswerStream:
    """Queue of TOKEN and CITATION events for the answer of one turn.

    Attributes:
        record: called with the ids of documents before they are shown.
    """

    event_log: EventLog
    record: RecordDocuments
    draft: Draft
    _queue: list[RunEvent] = field(default_factory=list)
    _sent_chars: int = 0
    _flushed_at: float = field(default_factory=time.monotonic)

    def continue_from(self, answer: RunAnswer) -> None:
        """Continue an answer whose text and figures were already streamed, so that they are not sent
        again.
        """
        self.draft.continue_from(answer.text)
        self.draft.figures.placed.extend(answer.figures)
        self._sent_chars = len(answer.text)

    def announce(self, citation: Citation) -> None:
        """Queue a CITATION event. Call this before writing the citation's marker to the draft."""
        self._queue_text()
        self._queue.append(CitationEvent.of(citation))

    @property
    def is_due(self) -> bool:
        """Whether the last append was at least FLUSH_SECONDS ago."""
        return time.monotonic() - self._flushed_at >= FLUSH_SECONDS

    async def flush(self) -> None:
        """Append all queued events to the journal in one request."""
        if events := await self._events():
            await self.event_log.write(*events)
            # The interval is counted from the end of the append, so that slow appends lead to fewer, larger
            # batches.
            self._flushed_at = time.monotonic()

    async def stage(self) -> None:
        """Stage the queued events, so that they are appended together with the completion of the step."""
        self.event_log.stage(*await self._events())

    async def _events(self) -> list[RunEvent]:
        self._queue_text()
        events, self._queue = self._queue, []
        if events:
            cited = [event.doc_id for event in events if isinstance(event, CitationEvent)]
            await self.record([*cited, *(figure.doc_id for figure in self.draft.figures.placed)])
        return events

    def _queue_text(self) -> None:
        if text := self.draft.text[self._sent_chars :]:
            self._queue.append(TokenEvent(text=text))
            self._sent_chars = len(self.draft.text)
