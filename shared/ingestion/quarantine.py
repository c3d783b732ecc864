"""Quarantine: a version of a file that failed three times is left alone until it changes, or a person asks.

Without it a file that brings down its parser would do so for ever, at every event and every reconciliation.
"""

from shared.models.ingestion import DocumentState

MAX_TRIES = 3


def is_quarantined(state: DocumentState) -> bool:
    """Whether the version that the state is about has had its tries."""
    return state.status == "failed" and state.failed_tries >= MAX_TRIES


def keeps_out(state: DocumentState, etag: str) -> bool:
    """Whether the blob's present version is the one that is quarantined."""
    return is_quarantined(state) and state.wanted_etag == etag
