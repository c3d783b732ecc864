"""Ids of documents, blocks and ingestions, derived from blob names and contents, and windows of document ids.

A file that belongs to one conversation is stored as `conversation-files/{thread_id}/{name}`. Its name
determines its thread, so it can't be moved to another thread. Its id is longer than that of other documents.
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
# No thread has this id.
_NO_THREAD = "?"
# Length of the owner digest with which the id of a thread begins.
_OWNER_DIGITS = 16
_CONVERSATION_ID = re.compile("[0-9a-f]{32}")
# Number of leading hex digits of an id that windows can divide.
_DIGITS = 6
_BITS = 4 * _DIGITS


def document_id(blob_name: str) -> str:
    """Return the id of the document stored in a blob: 32 hex digits for a file that belongs to one
    conversation, otherwise 24.

    The id is derived from the path, so a new version of a file is the same document.
    """
    return digest("document", blob_name)[: 32 if is_conversation_file(blob_name) else 24]


def version_folder(doc_id: str, version_key: str) -> str:
    """Return the folder of a document version in the work container, with a trailing slash."""
    return f"{VERSIONS}{doc_id}/{version_key}/"


def block_id(doc_id: str, texts: Iterable[str], embedding_model: str, occurrence: int) -> str:
    """Return the id of a text block. It depends on the text of the block but not on neighbouring blocks.

    The id includes the embedding model, because a query must never mix vectors of two models.

    Args:
        texts: what is embedded, and what is shown if it differs.
        occurrence: 0 for the document's first block with this text, 1 for the next.
    """
    return f"{doc_id}-{digest(embedding_model, *texts)[:16]}-{occurrence}"


def block_id_in(doc_id: str, block_id: str) -> str:
    """Return the id that a block would have in another document with the same content."""
    return f"{doc_id}-{block_id.partition('-')[2]}"


def figure_block_id(doc_id: str, key: str, embedding_model: str, captioned_by: str) -> str:
    """Return the id of the block of a figure. It depends on the picture but not on the surrounding text.

    Args:
        key: SHA-256 of the picture, as hex.
        captioned_by: method that created the caption; part of the id.
    """
    return f"{doc_id}-{digest('figure', embedding_model, captioned_by, key)[:16]}-0"


def ingestion_id(blob_name: str) -> str:
    """Return the instance id of the orchestration that ingests a document. Each document has only one."""
    return f"ingest-{document_id(blob_name)}"


def document_of_blob(blob_name: str) -> str:
    """Return the blob name of the document that a blob event is about. For a sidecar, this is the file that
    the sidecar describes.
    """
    suffix = SIDECAR_SUFFIX if blob_name.endswith(SIDECAR_SUFFIX) else HINTS_SUFFIX
    return blob_name.removesuffix(suffix)


def is_sidecar(blob_name: str) -> bool:
    """Return whether a blob is a sidecar, which contains the permissions or table hints of a document."""
    return blob_name.endswith((SIDECAR_SUFFIX, HINTS_SUFFIX))


def hints_of(blob_name: str) -> str | None:
    """Return the blob name of the sidecar with table hints for a document, or None if its file format has no
    tables.
    """
    return blob_name + HINTS_SUFFIX if blob_name.lower().endswith(_WITH_TABLES) else None


def is_upload(blob_name: str) -> bool:
    """Return whether a blob name is reserved for files that are uploaded through the API."""
    return blob_name.startswith(f"{UPLOADS}/")


def is_synchronised(blob_name: str) -> bool:
    """Return whether a blob mirrors a SharePoint file. The original decides about its permissions and
    deletion.
    """
    return blob_name.startswith(f"{SHAREPOINT}/")


def is_conversation_file(blob_name: str) -> bool:
    """Return whether a blob name is reserved for files that belong to a single conversation."""
    return blob_name.startswith(f"{CONVERSATION_FILES}/")


def is_conversation_id(doc_id: str) -> bool:
    """Return whether a document id belongs to a file of a single conversation."""
    return _CONVERSATION_ID.fullmatch(doc_id) is not None


def thread_of(blob_name: str) -> str:
    """Return the id of the only thread that may use a file, or "" if the file is not limited to a thread."""
    # A malformed path without a thread must not make the file available to all threads.
    return (blob_name.split("/")[1] or _NO_THREAD) if is_conversation_file(blob_name) else ""


def files_of_thread(thread_id: str) -> str:
    """Return the blob name prefix that all files of a thread share."""
    return f"{CONVERSATION_FILES}/{thread_id}/"


def has_own_sidecar(blob_name: str) -> bool:
    """Return whether the app writes the permissions sidecar of a blob before the blob itself, so that a blob
    without one is incomplete.
    """
    return is_upload(blob_name) or is_conversation_file(blob_name)


def sender_of(blob_name: str) -> str:
    """Return a key for the person whose share of the ingestion capacity a file uses. It is part of the blob
    name; "" for files that weren't uploaded through the app.
    """
    if is_conversation_file(blob_name):
        return thread_of(blob_name)[:_OWNER_DIGITS]
    return blob_name.split("/")[1] if is_upload(blob_name) else ""


def folder_of(blob_name: str) -> str:
    """Return the folder by which a file is grouped: the folder of its uploader or thread owner, or the
    top-level folder of any other file. Return "" if it has none.
    """
    if is_conversation_file(blob_name):
        return f"{CONVERSATION_FILES}/{thread_of(blob_name)[:_OWNER_DIGITS]}"
    folders = blob_name.split("/")[:-1]
    return "/".join(folders[: 2 if is_upload(blob_name) else 1])


def upload_folder(blob_name: str) -> str | None:
    """Return the folder that the uploader chose ("" for none), or None if the file wasn't uploaded through
    the API.
    """
    return "/".join(blob_name.split("/")[2:-1]) if is_upload(blob_name) else None


@dataclass(frozen=True)
class IdWindow:
    """The documents whose ids start with certain bits. Work on all documents can be spread over several
    windows.

    Attributes:
        bits: number of bits; 0 = all documents, with any id.
        value: the bits as a non-negative integer.
    """

    bits: int = 0
    value: int = 0

    @property
    def low(self) -> str:
        """The first id of the window, or "" if it has no lower bound."""
        return f"{self.value << (_BITS - self.bits):0{_DIGITS}x}" if self.value else ""

    @property
    def high(self) -> str | None:
        """The first id after the window, or None if it has no upper bound."""
        beyond = self.value + 1
        return None if beyond == 1 << self.bits else f"{beyond << (_BITS - self.bits):0{_DIGITS}x}"

    @property
    def prefix(self) -> str:
        """The prefix that all ids of the window share. Other ids may also have it, because it consists of
        whole hex digits.
        """
        digits = self.bits // 4
        return f"{self.value >> (self.bits - 4 * digits):0{digits}x}" if digits else ""

    @property
    def share(self) -> float:
        """The fraction of all documents that is expected in the window."""
        return 1 / (1 << self.bits)

    def holds(self, doc_id: str) -> bool:
        """Return whether the window contains the id of a document."""
        return self.low <= doc_id and (self.high is None or doc_id < self.high)

    def condition(self, name: str) -> str | None:
        """Return an OData condition that limits a field or column to the window, or None if the window
        contains all ids.
        """
        above = f"{name} ge {quote(self.low)}" if self.low else None
        below = f"{name} lt {quote(self.high)}" if self.high is not None else None
        return all_of(above, below)

    def narrowed(self, count: int, bits: int | None = None) -> "IdWindow":
        """Return a part of the window: half of it or, with `bits`, the part with this many bits. Increasing
        values of `count` select the parts in turn.
        """
        window = self
        while window.bits < min(self.bits + 1 if bits is None else bits, _BITS):
            window = IdWindow(window.bits + 1, 2 * window.value + (count >> window.bits & 1))
        return window


EVERYTHING = IdWindow()
