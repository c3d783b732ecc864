"""Ids of documents, blocks and ingestion instances. Pure: the same input gives the same id anywhere."""

import hashlib
import re

SIDECAR_SUFFIX = ".acl.json"
_PLAIN_ETAG = re.compile(r"[A-Za-z0-9]{1,40}\Z")


def document_id(blob_name: str) -> str:
    """The id of the document that a blob of the documents container holds: 24 hex digits.

    Derived from the path, so that a new version of a file is the same document.
    """
    return digest("document", blob_name)[:24]


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
    return blob_name.removesuffix(SIDECAR_SUFFIX)


def is_sidecar(blob_name: str) -> bool:
    """Whether the blob holds rights and not a document."""
    return blob_name.endswith(SIDECAR_SUFFIX)


def digest(*parts: str) -> str:
    """sha256, as hex, of the parts; their borders count."""
    joined = "\x1f".join(parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
