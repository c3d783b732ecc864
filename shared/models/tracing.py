"""How a trace goes on from one process to the next: with an orchestration's input and its activities'."""

from datetime import datetime

from shared.models.base import Model


class TraceLink(Model):
    """The place of one orchestration in a trace. Random ids and an instant, nothing else.

    Attributes:
        parent: `traceparent` (W3C Trace Context) of what started the orchestration.
        own: that of the orchestration itself, whose span is recorded when it ends.
        started_at: with zone.
    """

    parent: str
    own: str
    started_at: datetime
