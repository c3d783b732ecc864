"""Quarantine: bytes of a file that failed three times are left alone until they change, or a person asks.

Without it a file that brings down its parser would do so for ever, at every event and every reconciliation.
A new version is read to see whether it is new; if it is the same bytes once more, they go to no parser.
"""

from shared.documents.state import DocumentState
from shared.platform.errors import BadDocumentError

MAX_TRIES = 3


def is_quarantined(state: DocumentState) -> bool:
    """Whether the version that the state is about has had its tries."""
    return state.status == "failed" and state.failed_tries >= MAX_TRIES


def keeps_out(state: DocumentState, etag: str) -> bool:
    """Whether the blob's present version is the one that is quarantined."""
    return is_quarantined(state) and state.wanted_etag == etag


def with_bytes(state: DocumentState, content_hash: str, etag: str) -> DocumentState:
    """The state once the file's bytes are known: tries of other bytes do not count."""
    read = state.model_copy(update={"wanted_etag": etag, "tried_hash": content_hash})
    if content_hash == state.tried_hash:
        return read
    return read.model_copy(update={"failed_tries": 0, "tried_reason": None})


def refuse_what_always_failed(state: DocumentState) -> None:
    """Let only bytes pass that have tries left.

    Raises:
        BadDocumentError: they have none; with the reason of the last one.
    """
    if state.failed_tries >= MAX_TRIES:
        raise BadDocumentError(
            state.tried_reason or "The file could not be ingested.",
            "The same bytes failed three times: change the file, or ask for another try.",
        )
