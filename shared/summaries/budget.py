"""The token budget of a summary: windows per document, and tokens per step. Pure.

Steps run concurrently without a shared counter, so the budget is divided in advance: each document gets an
equal share and is read only as far as that lasts, and each step has a limit.
"""

from shared.platform.settings import SummarySettings

_PROMPT_TOKENS = 1500  # instructions, schema, and a focus of 2,000 characters
_MERGE_DIVISOR = 4  # merging reads findings, which are much shorter than the windows (unmeasured)
_LEAST_CALLS = 2  # per merge, however small its share, to allow one retry


def most_windows(settings: SummarySettings, document_count: int) -> int:
    """Return the maximum number of windows per document, at least one."""
    share = settings.max_tokens // document_count
    return max(1, min(settings.max_windows, share // _call_tokens(settings)))


def reading_tokens(settings: SummarySettings, window_count: int) -> int:
    """Return the tokens for reading `window_count` windows. Retries reduce what is left for the others."""
    return window_count * _call_tokens(settings)


def merging_tokens(settings: SummarySettings, document_count: int) -> int:
    """Return the tokens for merging the findings of one of several documents, or of all documents if 1."""
    share = settings.max_tokens // document_count // _MERGE_DIVISOR
    return max(share, _LEAST_CALLS * _call_tokens(settings))


def _call_tokens(settings: SummarySettings) -> int:
    """Return the maximum tokens of one call, input and output."""
    return settings.window_tokens + _PROMPT_TOKENS + settings.output_tokens
