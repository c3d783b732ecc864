"""Whether the file, state and rows of one document agree. Pure; names one difference."""

from dataclasses import dataclass, field
from datetime import datetime

from shared.documents.state import DocumentState
from shared.ingestion.models import Difference, DifferenceKind
from shared.retrieval.models import DocumentRecord

ENDED = frozenset({"ready", "failed"})


@dataclass(frozen=True)
class SeenDocument:
    """One document from every side; None (or "") = there is none.

    Attributes:
        etag: of its file.
        sidecar_etag: of the file that says who may read it.
    """

    name: str
    etag: str | None
    sidecar_etag: str
    state: DocumentState | None
    row: DocumentRecord | None


@dataclass
class SeenBlocks:
    """The blocks of one document, as the index holds them."""

    count: int = 0
    access_lists: set[tuple[str, ...]] = field(default_factory=set)
    figures: set[str] = field(default_factory=set)


def compare(seen: SeenDocument, pipeline: str) -> Difference | None:
    """The first thing that differs, None when all agrees.

    Args:
        pipeline: of the settings in force; a document made by others is outdated.
    """
    state = seen.state
    if state is None:
        return _difference("not_ingested", seen, "The file has no state: its event was missed.")
    if seen.etag is None:
        return _difference("file_gone", seen, "The file is gone, what was made of it is not.")
    if state.status not in ENDED or state.holder is not None or state.pending:
        return _difference("in_work", seen, f"Status {state.status}, held by {state.holder or 'nobody'}.")
    return _compare_content(seen, state, pipeline) or _compare_row(seen, state)


def compare_blocks(state: DocumentState, found: SeenBlocks) -> Difference | None:
    """Whether the blocks in the index are those of the state, for a document whose ingestion ended."""
    wanted = state.block_count if state.content_hash else 0
    if found.count != wanted:
        kind: DifferenceKind = "blocks_missing" if found.count < wanted else "blocks_differ"
        detail = f"{found.count} blocks are indexed, {wanted} belong to it."
        return Difference(kind=kind, place=state.blob_name, detail=detail)
    if has_other_readers(state, found):
        detail = "Blocks have another access list."
        return Difference(kind="blocks_differ", place=state.blob_name, detail=detail)
    return None


def has_other_readers(state: DocumentState, found: SeenBlocks) -> bool:
    """Whether a block in the index is open to others than its document is."""
    return bool(found.access_lists - {tuple(sorted(state.rights.acl))})


def is_stuck(state: DocumentState, moment: datetime) -> bool:
    """Whether a document in work is worked on by nobody: no holder, or one that showed no life."""
    return state.holder is None or state.held_until is None or state.held_until <= moment


def _compare_content(seen: SeenDocument, state: DocumentState, pipeline: str) -> Difference | None:
    tried_etag = state.wanted_etag if state.status == "failed" else state.blob_etag
    if tried_etag != seen.etag:
        return _difference("outdated", seen, "The file was replaced after it was ingested.")
    if state.status == "ready" and state.pipeline != pipeline:
        return _difference("outdated", seen, "It was ingested with other settings or rules.")
    is_indexed = state.content_hash != ""
    if state.sidecar_etag != seen.sidecar_etag or (is_indexed and state.rights != state.wanted_rights):
        return _difference("rights_differ", seen, "Its access list changed and was not applied.")
    return None


def _compare_row(seen: SeenDocument, state: DocumentState) -> Difference | None:
    is_indexed = state.content_hash != ""
    if not is_indexed:
        return None if seen.row is None else _difference("row_differs", seen, "It has a row but no content.")
    if seen.row is None:
        return _difference("row_missing", seen, "It is ready, and not in the index of documents.")
    row, rights = seen.row, state.rights
    said = (row.content_hash, row.version, row.owner_id, row.project_id, set(row.access_control_list))
    known = (state.content_hash, state.version, rights.owner_id, rights.project_id, set(rights.acl))
    if said != known:
        return _difference("row_differs", seen, "Its row tells of another version, or of other rights.")
    return None


def _difference(kind: DifferenceKind, seen: SeenDocument, detail: str) -> Difference:
    return Difference(kind=kind, place=seen.name, detail=detail)
