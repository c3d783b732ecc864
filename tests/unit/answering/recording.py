"""Streams of answers, without an audit trail."""

from collections.abc import Iterable

from shared.answering.answer_stream import AnswerStream
from shared.answering.draft import Draft
from shared.evidence.figures import FigurePlacer
from shared.retrieval.models import Hit
from shared.runs.event_log import EventLog


async def record_nothing(doc_ids: Iterable[str]) -> None:
    """Do nothing, in place of recording reads in the audit trail."""
    del doc_ids


def stream_to(event_log: EventLog, hits: tuple[Hit, ...]) -> AnswerStream:
    """Return the stream of an answer that may show figures of `hits`."""
    return AnswerStream(event_log, record_nothing, Draft(FigurePlacer(hits)))
