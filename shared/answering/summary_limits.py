"""Limits of a summary: tokens and windows per document, and deadlines for its parts. Pure.

Documents are read concurrently without a shared counter, so the tokens are divided in advance: each document
gets an equal share and is read only as far as that lasts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.answering.budget import Budget
from shared.platform.settings_groups.answers import SummarySettings
from shared.runs.events import ResumedStatus, RunEvent

# Tokens of the instructions, the output schema and a focus of 2,000 characters.
_PROMPT_TOKENS = 1500
# The tokens for reading divided by this are the tokens for merging, because findings are much shorter than
# windows. Not measured.
_MERGE_DIVISOR = 4
# Number of model calls for which a merge always has tokens. The second one allows a retry.
_LEAST_CALLS = 2
# Maximum share of the total time that is reserved for each of the two merges. Not measured.
_RESERVE = 0.25
# Share of the time reserved for a merge that is left for storing a document's result before its child is
# terminated.
_STORE_SHARE = 0.1


def most_windows(settings: SummarySettings, document_count: int) -> int:
    """Return the maximum number of windows that are read per document. It is at least one."""
    share = Budget(settings.max_tokens).share(document_count)
    return max(1, min(settings.max_windows, share.max_tokens // _call_tokens(settings)))


def document_tokens(settings: SummarySettings, document_count: int) -> int:
    """Return the token limit of one document, for reading it and merging its findings."""
    share = Budget(settings.max_tokens).share(document_count, least_tokens=_call_tokens(settings))
    return share.max_tokens + merge_tokens(settings, document_count)


def merge_tokens(settings: SummarySettings, document_count: int = 1) -> int:
    """Return the token limit for merging the findings of one of `document_count` documents, or by default for
    merging all documents.
    """
    least_tokens = _LEAST_CALLS * _call_tokens(settings)
    return (
        Budget(settings.max_tokens)
        .share(document_count * _MERGE_DIVISOR, least_tokens=least_tokens)
        .max_tokens
    )


def _call_tokens(settings: SummarySettings) -> int:
    """Return the maximum number of input and output tokens of one model call."""
    return settings.window_tokens + _PROMPT_TOKENS + settings.output_tokens


@dataclass(frozen=True)
class SummaryTime:
    """The deadlines for the parts of a summary, all with time zone.

    Attributes:
        read_until: no window is started later; the windows read by then are merged.
        reduce_until: the findings of a document must be merged by then.
        children_until: children that are still running are terminated.
        deadline: the latest time of the result, apart from crash recovery.
    """

    read_until: datetime
    reduce_until: datetime
    children_until: datetime
    deadline: datetime

    @classmethod
    def of(cls, settings: SummarySettings, created_at: datetime, events: Iterable[RunEvent]) -> "SummaryTime":
        """Return the deadlines of a summary. After a revival, they are counted from the time of the revival.

        Args:
            events: the journal so far.
        """
        began = max([created_at, *(event.at for event in events if isinstance(event, ResumedStatus))])
        deadline = began + timedelta(seconds=settings.timeout_s)
        reserve = timedelta(seconds=min(1.5 * settings.call_timeout_s, _RESERVE * settings.timeout_s))
        return cls(
            read_until=deadline - 2 * reserve,
            reduce_until=deadline - reserve - reserve * _STORE_SHARE,
            children_until=deadline - reserve,
            deadline=deadline,
        )
