"""Ids of documents, blocks and ingestions, derived from blob names and contents, and windows of document ids.

A file that belongs to one conversation is stored as `conversation-files/{thread_id}/{name}`. Its name
determines its thread, so it can't be moved to another thread. Its id is longer than that of other documents.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from shared.platform.hashing import digest
from shared.platform.names import TABLE_SUFFIXES
from shared.platform.odata import all_of, quote

SIDECAR_SUFFIX = ".acl.json"
HINTS_SUFFIX = ".tables.yaml"
UPLOADS = "uploads"
VERSIONS = "versions/"
SHAREPOINT = "sharepoint"
CONVERSATION_FILES = "conversation-files"
# Placeholder for the thread id that a malformed name lacks. No thread has this id.
_NO_THREAD = "?"
# Length of the owner's digest, with which every thread id starts.
_OWNER_DIGITS = 16
_CONVERSATION_ID = re.compile("[0-9a-f]{32}")
# Maximum number of leading hex digits of a document id by which windows are divided.
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
    """Return the id of a figure's block. It depends on the picture and on whether a model or a rule wrote the
    caption, but not on the surrounding text.

    Args:
        key: SHA-256 of the picture, as hex.
        captioned_by: method that created the caption; part of the id.
    """
    return f"{doc_id}-{digest('figure', embedding_model, captioned_by, key)[:16]}-0"


def ingestion_id(blob_name: str) -> str:
    """Return the instance id of the orchestration that ingests a document. Each document has only one."""
    return f"ingest-{document_id(blob_name)}"


def document_of_blob(blob_name: str) -> str:
    """Return the blob name of the document that a changed blob belongs to. For a sidecar, this is the file
    that the sidecar describes.
    """
    suffix = SIDECAR_SUFFIX if blob_name.endswith(SIDECAR_SUFFIX) else HINTS_SUFFIX
    return blob_name.removesuffix(suffix)


def is_sidecar(blob_name: str) -> bool:
    """Return whether a blob is a sidecar, which contains the permissions or table hints of a document."""
    return blob_name.endswith((SIDECAR_SUFFIX, HINTS_SUFFIX))


def hints_of(blob_name: str) -> str | None:
    """Return the blob name of the table hints for a document, or None if its file format has no tables."""
    return blob_name + HINTS_SUFFIX if blob_name.lower().endswith(TABLE_SUFFIXES) else None


def is_upload(blob_name: str) -> bool:
    """Return whether a blob has the name of a file uploaded through the API."""
    return blob_name.startswith(f"{UPLOADS}/")


def is_synchronised(blob_name: str) -> bool:
    """Return whether a blob is a copy of a SharePoint file, whose permissions and deletion follow the
    original.
    """
    return blob_name.startswith(f"{SHAREPOINT}/")


def is_conversation_file(blob_name: str) -> bool:
    """Return whether a blob has the name of a file that belongs to a single conversation."""
    return blob_name.startswith(f"{CONVERSATION_FILES}/")


def is_conversation_id(doc_id: str) -> bool:
    """Return whether a document id belongs to a file of a single conversation."""
    return _CONVERSATION_ID.fullmatch(doc_id) is not None


def thread_of(blob_name: str) -> str:
    """Return the id of the only thread that may use a file, or "" if the file is not limited to a thread."""
    # A malformed name without a thread must not make the file available in all threads.
    return (blob_name.split("/")[1] or _NO_THREAD) if is_conversation_file(blob_name) else ""


def files_of_thread(thread_id: str) -> str:
    """Return the blob name prefix that all files of a thread share."""
    return f"{CONVERSATION_FILES}/{thread_id}/"


def has_own_sidecar(blob_name: str) -> bool:
    """Return whether the app writes a permissions sidecar before it stores this blob. If so, the blob must
    not be used while its sidecar is missing.
    """
    return is_upload(blob_name) or is_conversation_file(blob_name)


def sender_of(blob_name: str) -> str:
    """Return a key for the person on whose behalf a file is ingested, so that capacity is shared fairly.
    Files that weren't uploaded through the app have the key "".
    """
    if is_conversation_file(blob_name):
        return thread_of(blob_name)[:_OWNER_DIGITS]
    return blob_name.split("/")[1] if is_upload(blob_name) else ""


def folder_of(blob_name: str) -> str:
    """Return the folder that groups a file with others of the same origin: the folder of its uploader or
    thread owner, or the top-level folder of any other file. Return "" if it has none.
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
    """Range of document ids that start with the same bits. Windows divide work on all documents into parts of
    about equal size.

    Attributes:
        bits: number of bits; 0 = all documents, with any id.
        value: the bits as a non-negative integer.
    """

    bits: int = 0
    value: int = 0

    @property
    def low(self) -> str:
        """First id of the window, or "" if it has no lower bound."""
        return f"{self.value << (_BITS - self.bits):0{_DIGITS}x}" if self.value else ""

    @property
    def high(self) -> str | None:
        """First id after the window, or None if it has no upper bound."""
        beyond = self.value + 1
        return None if beyond == 1 << self.bits else f"{beyond << (_BITS - self.bits):0{_DIGITS}x}"

    @property
    def prefix(self) -> str:
        """Prefix of all ids in the window. It consists of whole hex digits, so other ids may have the same
        prefix.
        """
        digits = self.bits // 4
        return f"{self.value >> (self.bits - 4 * digits):0{digits}x}" if digits else ""

    @property
    def share(self) -> float:
        """Expected fraction of all documents whose ids are in the window."""
        return 1 / (1 << self.bits)

    def holds(self, doc_id: str) -> bool:
        """Return whether the window contains the id of a document."""
        return self.low <= doc_id and (self.high is None or doc_id < self.high)

    def condition(self, name: str) -> str | None:
        """Return an OData condition that limits the field or column `name` to the window, or None if the
        window contains all ids.
        """
        above = f"{name} ge {quote(self.low)}" if self.low else None
        below = f"{name} lt {quote(self.high)}" if self.high is not None else None
        return all_of(above, below)

    def narrow(self, count: int, bits: int | None = None) -> "IdWindow":
        """Return one of the smaller windows inside this one, with one additional bit, or with `bits` bits in
        total. Consecutive values of `count` select all of them in turn.
        """
        window = self
        while window.bits < min(self.bits + 1 if bits is None else bits, _BITS):
            window = IdWindow(window.bits + 1, 2 * window.value + (count >> window.bits & 1))
        return window


EVERYTHING = IdWindow()
