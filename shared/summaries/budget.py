"""The token budget of a summary: how many windows of a document are read, and what a step may use. Pure.

Steps of a summary run side by side and share no counter. So the budget is divided before they begin: each
document gets an equal share, a document is read only as far as its share goes, and each step has a limit.
"""

from shared.platform.settings import SummarySettings

_PROMPT_TOKENS = 1500  # instructions, schema, and a focus of 2,000 characters
_MERGE_DIVISOR = 4  # merging reads findings, which are much shorter than what was read (unmeasured)
_LEAST_CALLS = 2  # of a merge, however small its share: one call that fails may be repeated


def most_windows(settings: SummarySettings, document_count: int) -> int:
    """Return how many windows of each document are read, at least one."""
    share = settings.max_tokens // document_count
    return max(1, min(settings.max_windows, share // _call_tokens(settings)))


def reading_tokens(settings: SummarySettings, window_count: int) -> int:
    """Return the tokens for reading so many windows. A call that is repeated leaves less for the others."""
    return window_count * _call_tokens(settings)


def merging_tokens(settings: SummarySettings, document_count: int) -> int:
    """Return the tokens for merging the findings of one of so many documents, or of all of them for 1."""
    share = settings.max_tokens // document_count // _MERGE_DIVISOR
    return max(share, _LEAST_CALLS * _call_tokens(settings))


def _call_tokens(settings: SummarySettings) -> int:
    """Return the most tokens that one call reads and writes."""
    return settings.window_tokens + _PROMPT_TOKENS + settings.output_tokens
