"""Copies: documents of the same bytes. Which may save another one work, and which is another one's new name.

Pure. That a copy exists is told to nobody who may not read it: not even by how little a document cost. So a
document profits only from one that each of its own readers may read, in the same project.
"""

from datetime import datetime, timedelta

from shared.core.security_filter import PUBLIC
from shared.models.ingestion import DocumentState, Rights

RENAME_WINDOW = timedelta(minutes=15)  # a folder is moved by copying all of it, then deleting (unmeasured)


def covers(wider: Rights, narrower: Rights) -> bool:
    """Whether all who may read by the second may read by the first; never where nobody may read."""
    readers = set(narrower.acl)
    return bool(readers) and (PUBLIC in wider.acl or readers <= set(wider.acl))


def may_reuse(copy: DocumentState, original: DocumentState, content_hash: str, pipeline: str) -> bool:
    """Whether what was made of the original may be used for the copy.

    Args:
        content_hash, pipeline: of the copy, as it is going to be.
    """
    is_same = (original.content_hash, original.pipeline) == (content_hash, pipeline)
    return is_same and original.doc_id != copy.doc_id and _may_tell(original, copy)


def has_same_owner(one: DocumentState, other: DocumentState) -> bool:
    """Whether both belong to one person; documents without an owner belong to nobody."""
    owner = one.wanted_rights.owner_id
    return bool(owner) and owner == other.wanted_rights.owner_id


def is_new_name(old: DocumentState, other: DocumentState, moment: datetime) -> bool:
    """Whether `other` is what the owner of `old`, whose file is gone, made of it by giving it a new name.

    That is a copy of the same owner, never corrected, ingested for the first time a short while ago.
    """
    is_fresh = other.version == 1 and bool(other.phases) and moment - other.phases[0].at <= RENAME_WINDOW
    is_same = other.doc_id != old.doc_id and other.content_hash == old.content_hash
    return (
        is_fresh
        and is_same
        and not other.corrections
        and has_same_owner(old, other)
        and _may_tell(old, other)
    )


def _may_tell(original: DocumentState, copy: DocumentState) -> bool:
    """Rights that are wanted count as much as those applied: while they change, the narrower hold."""
    wanted = copy.wanted_rights
    return (
        original.rights.project_id == original.wanted_rights.project_id == wanted.project_id
        and covers(original.rights, wanted)
        and covers(original.wanted_rights, wanted)
    )
