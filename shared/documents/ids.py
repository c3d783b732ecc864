"""Ids of documents, blocks and ingestion instances, and ranges of ids. Pure and deterministic.

A file for one conversation lies at `conversation-files/{thread_id}/{name}`. Its thread follows from its name,
so nothing can move it to another thread, and it can be recognised by the length of its id.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from shared.platform.hashing import digest
from shared.platform.odata import all_of, quote

SIDECAR_SUFFIX = ".acl.json"
HINTS_SUFFIX = ".tables.yaml"
_WITH_TABLES = (".csv", ".tsv", ".xlsx", ".xlsm")
UPLOADS = "uploads"
VERSIONS = "versions/"
SHAREPOINT = "sharepoint"
CONVERSATION_FILES = "conversation-files"
_NO_THREAD = "?"  # no thread has this id
_OWNER_DIGITS = 16  # of a thread's id: the digest of its owner
_CONVERSATION_ID = re.compile("[0-9a-f]{32}")
_DIGITS = 6  # digits of an id that define windows
_BITS = 4 * _DIGITS


def document_id(blob_name: str) -> str:
    """Return the id of the document in a blob: 24 hex digits, or 32 of a file for one conversation.

    The id is derived from the path, so a new version of a file is the same document.
    """
    return digest("document", blob_name)[: 32 if is_conversation_file(blob_name) else 24]


def version_folder(doc_id: str, version_key: str) -> str:
    """Return the folder of a version in the work container, with a trailing slash."""
    return f"{VERSIONS}{doc_id}/{version_key}/"


def block_id(doc_id: str, texts: Iterable[str], embedding_model: str, occurrence: int) -> str:
    """Return the id of a block, which depends on its text but not on its neighbours.

    The id includes the embedding model, because a query must never mix vectors of two models.

    Args:
        texts: what is embedded, and what is shown if it differs.
        occurrence: 0 for the document's first block with this text, 1 for the next.
    """
    return f"{doc_id}-{digest(embedding_model, *texts)[:16]}-{occurrence}"


def block_id_in(doc_id: str, block_id: str) -> str:
    """Return the id of the same block in another document with the same bytes."""
    return f"{doc_id}-{block_id.partition('-')[2]}"


def figure_block_id(doc_id: str, key: str, embedding_model: str, captioned_by: str) -> str:
    """Return the id of a figure's block, which depends on the picture but not on the surrounding text.

    Args:
        key: SHA-256 of the picture, as hex.
        captioned_by: method that created the caption; part of the id.
    """
    return f"{doc_id}-{digest('figure', embedding_model, captioned_by, key)[:16]}-0"


def ingestion_id(blob_name: str) -> str:
    """Return the id of the only instance that ingests a document."""
    return f"ingest-{document_id(blob_name)}"


def document_of_blob(blob_name: str) -> str:
    """Return the blob name of the document that an event concerns: for a sidecar, the file that it belongs
    to.
    """
    suffix = SIDECAR_SUFFIX if blob_name.endswith(SIDECAR_SUFFIX) else HINTS_SUFFIX
    return blob_name.removesuffix(suffix)


def is_sidecar(blob_name: str) -> bool:
    """Return whether the blob contains permissions or table hints instead of a document."""
    return blob_name.endswith((SIDECAR_SUFFIX, HINTS_SUFFIX))


def hints_of(blob_name: str) -> str | None:
    """Return the name of the blob for hints about a document's tables; None if its format has no tables."""
    return blob_name + HINTS_SUFFIX if blob_name.lower().endswith(_WITH_TABLES) else None


def is_upload(blob_name: str) -> bool:
    """Return whether the blob was, or will be, uploaded through the API."""
    return blob_name.startswith(f"{UPLOADS}/")


def is_synchronised(blob_name: str) -> bool:
    """Return whether a blob mirrors a file in SharePoint, where its permissions and deletion are decided."""
    return blob_name.startswith(f"{SHAREPOINT}/")


def is_conversation_file(blob_name: str) -> bool:
    """Return whether a blob is, or would be, a file for one conversation."""
    return blob_name.startswith(f"{CONVERSATION_FILES}/")


def is_conversation_id(doc_id: str) -> bool:
    """Return whether an id names a file for one conversation."""
    return _CONVERSATION_ID.fullmatch(doc_id) is not None


def thread_of(blob_name: str) -> str:
    """Return the only thread in which a file may be read; "" = no such limit."""
    # A path without a thread must not open the file to all threads.
    return (blob_name.split("/")[1] or _NO_THREAD) if is_conversation_file(blob_name) else ""


def files_of_thread(thread_id: str) -> str:
    """Return the common prefix of the blobs of a thread's files."""
    return f"{CONVERSATION_FILES}/{thread_id}/"


def has_own_sidecar(blob_name: str) -> bool:
    """Return whether the app writes a blob's permissions before the blob: without them there is no file."""
    return is_upload(blob_name) or is_conversation_file(blob_name)


def sender_of(blob_name: str) -> str:
    """Return whose share of ingestion a file uses, as named in its path; "" for files from elsewhere."""
    if is_conversation_file(blob_name):
        return thread_of(blob_name)[:_OWNER_DIGITS]
    return blob_name.split("/")[1] if is_upload(blob_name) else ""


def folder_of(blob_name: str) -> str:
    """Return the uploader's folder, the owner's part of a thread's folder, or the top folder of a file from
    elsewhere; "" if it has none.
    """
    if is_conversation_file(blob_name):
        return f"{CONVERSATION_FILES}/{thread_of(blob_name)[:_OWNER_DIGITS]}"
    folders = blob_name.split("/")[:-1]
    return "/".join(folders[: 2 if is_upload(blob_name) else 1])


def upload_folder(blob_name: str) -> str | None:
    """Return the folder that the uploader chose, "" if none; None for files from elsewhere."""
    return "/".join(blob_name.split("/")[2:-1]) if is_upload(blob_name) else None


@dataclass(frozen=True)
class IdWindow:
    """The documents whose ids start with given bits, for work that is spread over several passes.

    Attributes:
        bits: number of bits; 0 = all documents, with any id.
        value: the bits as a number.
    """

    bits: int = 0
    value: int = 0

    @property
    def low(self) -> str:
        """The first id of the window; empty if it is unbounded."""
        return f"{self.value << (_BITS - self.bits):0{_DIGITS}x}" if self.value else ""

    @property
    def high(self) -> str | None:
        """The first id after the window; None if it is unbounded."""
        beyond = self.value + 1
        return None if beyond == 1 << self.bits else f"{beyond << (_BITS - self.bits):0{_DIGITS}x}"

    @property
    def prefix(self) -> str:
        """The common prefix of all ids in the window."""
        digits = self.bits // 4
        return f"{self.value >> (self.bits - 4 * digits):0{digits}x}" if digits else ""

    @property
    def share(self) -> float:
        """The fraction of all documents that the window contains."""
        return 1 / (1 << self.bits)

    def holds(self, doc_id: str) -> bool:
        """Return whether the window contains a document."""
        return self.low <= doc_id and (self.high is None or doc_id < self.high)

    def condition(self, name: str) -> str | None:
        """Return the window as an OData condition on a field or column; None = no condition."""
        above = f"{name} ge {quote(self.low)}" if self.low else None
        below = f"{name} lt {quote(self.high)}" if self.high is not None else None
        return all_of(above, below)

    def narrowed(self, count: int, bits: int | None = None) -> "IdWindow":
        """Return half of the window, alternating with `count`, or the part with `bits`;
        never a wider window.
        """
        window = self
        while window.bits < min(self.bits + 1 if bits is None else bits, _BITS):
            window = IdWindow(window.bits + 1, 2 * window.value + (count >> window.bits & 1))
        return window


EVERYTHING = IdWindow()
