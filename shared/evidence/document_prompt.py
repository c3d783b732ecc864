"""Renders documents as XML for prompts, with all values escaped."""

from collections.abc import Collection, Iterable, Mapping
from html import escape

from shared.evidence.source_links import clock_time
from shared.platform.prompts import element
from shared.retrieval.metadata_text import truncate
from shared.retrieval.models import DocumentRecord, Hit

_NOTHING: Mapping[str, str] = {}
# Keeps metadata short, so that the prompt has room for passages. Tags are the longest value: a model writes
# eight (about 120 characters), a person may set 30 (about 450).
_MAX_ATTRIBUTE_CHARS = 600


def unreadable(record: DocumentRecord) -> str:
    """Return a sentence for the model that explains why a document has no searchable text."""
    pages = f" It has {record.page_count} page{'s' * (record.page_count != 1)}." if record.page_count else ""
    return (
        f"{record.filename} exists but has no readable text: it is empty, or its pages are scanned pictures "
        f"that no text recognition has read.{pages}"
    )


def documents_with_blocks(
    hits: Iterable[Hit],
    records: Mapping[str, DocumentRecord],
    whole: Collection[str] = (),
    omitted: Mapping[str, str] = _NOTHING,
) -> str:
    """Render documents with their blocks as `<documents>` for a prompt. Documents are ordered by their first
    hit, and blocks by their position in the document.

    Args:
        whole: ids of documents to mark as complete.
        omitted: reasons for leaving out the text of a block, by block id.
    """
    by_document: dict[str, list[Hit]] = {}
    for hit in hits:
        by_document.setdefault(hit.doc_id, []).append(hit)
    parts = [
        _open_document(doc_id, document_hits[0].filename, records.get(doc_id), is_whole=doc_id in whole)
        + "\n".join(
            _block(hit, omitted.get(hit.block_id, ""))
            for hit in sorted(document_hits, key=lambda hit: hit.ordinal)
        )
        + "\n</document>"
        for doc_id, document_hits in by_document.items()
    ]
    return "<documents>\n" + "\n".join(parts) + "\n</documents>"


def documents_with_summaries(
    records: Iterable[DocumentRecord], total: int | None = None, filters: str = "", unmatched: str = ""
) -> str:
    """Render documents as `<documents>` for a prompt, with their metadata and short summaries instead of
    blocks.

    If there are more documents than `records`, the tag says so: `<documents total="60" shown="50">`.
    `filters` describes the applied filters, `unmatched` the filters that no document matches.
    """
    parts = [
        _open_document(record.doc_id, record.filename, record)
        + element("summary", record.summary_brief)
        + "\n</document>"
        for record in records
    ]
    counts = {"total": total, "shown": len(parts)} if total is not None and total > len(parts) else {}
    attributes = {**counts, "filters": filters, "no_document_has": unmatched}
    return f"<documents{_attributes(attributes)}>\n" + "\n".join(parts) + "\n</documents>"


def every_document(kind: str, records: Collection[DocumentRecord], read: Collection[str]) -> str:
    """Render a list of all documents of a kind as `<every_document>` for a prompt. Documents not in `read`
    are marked `read="no"`.

    Args:
        read: ids of the documents that were read, at least in part.
    """
    rows = (
        {
            "doc_id": record.doc_id,
            "filename": record.filename,
            "title": record.title,
            "document_date": record.printed_date,
            "read": "" if record.doc_id in read else "no",
        }
        for record in records
    )
    lines = "\n".join(f"<document{_attributes(values)}/>" for values in rows)
    return f"<every_document{_attributes({'kind': kind, 'count': len(records)})}>\n{lines}\n</every_document>"


def _open_document(
    doc_id: str, filename: str, record: DocumentRecord | None, *, is_whole: bool = False
) -> str:
    values: dict[str, object] = {"doc_id": doc_id, "filename": filename}
    if record is not None:
        values |= {
            "title": record.title,
            "document_type": record.document_type,
            "author": record.author,
            "published_by": record.published_by,
            "department": record.department,
            "language": record.language,
            "document_date": record.printed_date,
            "upload_date": record.upload_date.date().isoformat(),
            "version": record.version if record.version > 1 else None,
            "page_count": record.page_count,
            "tags": ", ".join(record.tags),
        }
    return f"<document{_attributes({**values, 'whole': 'yes' if is_whole else ''})}>\n"


def _block(hit: Hit, why_omitted: str) -> str:
    is_table = hit.content.startswith("|") or "\n\n| " in hit.content
    kind = "image" if hit.block_type == "image" else "table" if is_table else "text"
    values: dict[str, object] = {"page": hit.page_number, "heading": hit.heading_path, "type": kind}
    if kind == "image":
        # Models need block ids only to request pictures. Quotations are located by their words.
        values["block_id"] = hit.block_id
    if hit.start_seconds is not None:
        values["time"] = clock_time(hit.start_seconds)
    if why_omitted:
        return f"<block{_attributes({**values, 'omitted': why_omitted})}/>"
    text = hit.image_caption if hit.block_type == "image" else hit.content
    return f"<block{_attributes(values)}>{escape(text or '', quote=False)}</block>"


def _attributes(values: Mapping[str, object]) -> str:
    attributes = {name: truncate(str(value), _MAX_ATTRIBUTE_CHARS) for name, value in values.items() if value}
    return "".join(f' {name}="{escape(text)}"' for name, text in attributes.items())
