"""Ids of documents, blocks and ingestion instances, and ranges of ids. Pure: equal input, equal id."""

import re
from dataclasses import dataclass

from shared.platform.hashing import digest
from shared.platform.odata import all_of, quote

SIDECAR_SUFFIX = ".acl.json"
HINTS_SUFFIX = ".tables.yaml"
_WITH_TABLES = (".csv", ".tsv", ".xlsx", ".xlsm")
UPLOADS = "uploads"
VERSIONS = "versions/"
SHAREPOINT = "sharepoint"
_DIGITS = 6  # of an id, by which windows are cut
_BITS = 4 * _DIGITS
_PLAIN_ETAG = re.compile(r"[A-Za-z0-9]{1,40}\Z")


def document_id(blob_name: str) -> str:
    """The id of the document that a blob of the documents container holds: 24 hex digits.

    Derived from the path, so that a new version of a file is the same document.
    """
    return digest("document", blob_name)[:24]


def version_folder(doc_id: str, version_key: str) -> str:
    """Return the folder of a version in the work container, with its slash."""
    return f"{VERSIONS}{doc_id}/{version_key}/"


def block_id(doc_id: str, embedded_text: str, embedding_model: str, occurrence: int) -> str:
    """The id of a block: as long as its text stays, whatever comes before or after it.

    The embedding model is part of it: vectors of two models must never answer one query.

    Args:
        occurrence: 0 for the first block of the document with this text, 1 for the next.
    """
    return f"{doc_id}-{digest(embedding_model, embedded_text)[:16]}-{occurrence}"


def block_id_in(doc_id: str, block_id: str) -> str:
    """The id of the same block in another document of the same bytes."""
    return f"{doc_id}-{block_id.partition('-')[2]}"


def figure_block_id(doc_id: str, key: str, embedding_model: str, captioned_by: str) -> str:
    """The id of a figure's block: as long as the picture stays, whatever is written around it.

    Args:
        key: sha256 hex of the picture.
        captioned_by: the way its caption was made; another way makes another block.
    """
    return f"{doc_id}-{digest('figure', embedding_model, captioned_by, key)[:16]}-0"


def instance_id(blob_name: str, occasion: str) -> str:
    """The id of the ingestion that an event starts; a redelivered event finds the same instance.

    Args:
        occasion: what tells this event from others of the same path: the blob's etag.
    """
    plain = occasion.strip('"')
    mark = plain if _PLAIN_ETAG.match(plain) else digest(plain)[:32]
    return f"ingest-{document_id(blob_name)}-{mark}"


def document_of_blob(blob_name: str) -> str:
    """The document that an event is about: a sidecar's is the file that it belongs to."""
    suffix = SIDECAR_SUFFIX if blob_name.endswith(SIDECAR_SUFFIX) else HINTS_SUFFIX
    return blob_name.removesuffix(suffix)


def is_sidecar(blob_name: str) -> bool:
    """Whether the blob holds rights or hints, and not a document."""
    return blob_name.endswith((SIDECAR_SUFFIX, HINTS_SUFFIX))


def hints_of(blob_name: str) -> str | None:
    """The blob with hints about a document's tables, there or not; None if its format has no tables."""
    return blob_name + HINTS_SUFFIX if blob_name.lower().endswith(_WITH_TABLES) else None


def is_upload(blob_name: str) -> bool:
    """Whether the blob came, or was to come, through the API."""
    return blob_name.startswith(f"{UPLOADS}/")


def is_synchronised(blob_name: str) -> bool:
    """Tell whether a blob mirrors a file in SharePoint, which decides on its permissions and deletion."""
    return blob_name.startswith(f"{SHAREPOINT}/")


def sender_of(blob_name: str) -> str:
    """Whose file it is, as its path tells: the folder of an uploader; "" for all that came otherwise."""
    return blob_name.split("/")[1] if is_upload(blob_name) else ""


def upload_folder(blob_name: str) -> str | None:
    """The folder that the sender named, "" for none; None of a file that came otherwise."""
    return "/".join(blob_name.split("/")[2:-1]) if is_upload(blob_name) else None


@dataclass(frozen=True)
class IdWindow:
    """Documents whose ids, as numbers, begin with these bits.

    Attributes:
        bits: how many; 0 = all documents, whatever their ids look like.
        value: of these bits.
    """

    bits: int = 0
    value: int = 0

    @property
    def low(self) -> str:
        """The first id; empty = there is none before."""
        return f"{self.value << (_BITS - self.bits):0{_DIGITS}x}" if self.value else ""

    @property
    def high(self) -> str | None:
        """The first id beyond; None = there is none."""
        beyond = self.value + 1
        return None if beyond == 1 << self.bits else f"{beyond << (_BITS - self.bits):0{_DIGITS}x}"

    @property
    def prefix(self) -> str:
        """What all ids of the window begin with."""
        digits = self.bits // 4
        return f"{self.value >> (self.bits - 4 * digits):0{digits}x}" if digits else ""

    @property
    def share(self) -> float:
        """Of all documents."""
        return 1 / (1 << self.bits)

    def holds(self, doc_id: str) -> bool:
        """Whether a document belongs to it."""
        return self.low <= doc_id and (self.high is None or doc_id < self.high)

    def condition(self, name: str) -> str | None:
        """The same of a field or column, in OData; None = no condition."""
        above = f"{name} ge {quote(self.low)}" if self.low else None
        below = f"{name} lt {quote(self.high)}" if self.high is not None else None
        return all_of(above, below)

    def narrowed(self, count: int, bits: int | None = None) -> "IdWindow":
        """Its half that is due at this count, or the part of it that has `bits`; never a wider one."""
        window = self
        while window.bits < min(self.bits + 1 if bits is None else bits, _BITS):
            window = IdWindow(window.bits + 1, 2 * window.value + (count >> window.bits & 1))
        return window


EVERYTHING = IdWindow()
