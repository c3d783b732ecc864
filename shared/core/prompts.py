"""Rendering prompts. Pure: templates are given as text, material is escaped, so that it stays data."""

import re
from collections.abc import Iterable, Mapping
from html import escape

from shared.core.moments import clock_time
from shared.models.documents import DocumentRecord
from shared.models.search import Hit

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def render(template: str, values: Mapping[str, str]) -> str:
    """Replace each `{{name}}` once; what is put in is never read as a template again.

    Raises:
        KeyError: the template names a value that is not given.
    """
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


def element(name: str, text: str) -> str:
    """`<name>text</name>`, the text escaped: nothing in it can close the element or open another."""
    return f"<{name}>{escape(text, quote=False)}</{name}>"


def documents_with_blocks(hits: Iterable[Hit], records: Mapping[str, DocumentRecord]) -> str:
    """`<documents>` holding each document's blocks, documents in the order of their best block."""
    by_document: dict[str, list[Hit]] = {}
    for hit in hits:
        by_document.setdefault(hit.doc_id, []).append(hit)
    parts = [
        _open_document(doc_id, found[0].filename, records.get(doc_id))
        + "\n".join(_block(hit) for hit in found)
        + "\n</document>"
        for doc_id, found in by_document.items()
    ]
    return "<documents>\n" + "\n".join(parts) + "\n</documents>"


def documents_with_summaries(records: Iterable[DocumentRecord], total: int | None = None) -> str:
    """`<documents>` holding each document's metadata and brief summary, no blocks.

    When there are more documents than `records`, it says so: `<documents total="60" shown="50">`.
    """
    parts = [
        _open_document(record.doc_id, record.filename, record)
        + element("summary", record.summary_brief)
        + "\n</document>"
        for record in records
    ]
    counts = {"total": total, "shown": len(parts)} if total is not None and total > len(parts) else {}
    return f"<documents{_attributes(counts)}>\n" + "\n".join(parts) + "\n</documents>"


def _open_document(doc_id: str, filename: str, record: DocumentRecord | None) -> str:
    values: dict[str, object] = {"doc_id": doc_id, "filename": filename}
    if record is not None:
        values |= {
            "title": record.title,
            "document_type": record.document_type,
            "author": record.author,
            "department": record.department,
            "language": record.language,
            "upload_date": record.upload_date.date().isoformat(),
            "version": record.version if record.version > 1 else None,
            "page_count": record.page_count,
            "tags": ", ".join(record.tags),
        }
    return f"<document{_attributes(values)}>\n"


def _block(hit: Hit) -> str:
    kind = "image" if hit.block_type == "image" else "table" if hit.content.startswith("|") else "text"
    values: dict[str, object] = {"page": hit.page_number, "heading": hit.heading_path, "type": kind}
    if kind == "image":
        # Pictures alone are referred to by their block; quotations are found by their words.
        values["block_id"] = hit.block_id
    if hit.start_seconds is not None:
        values["time"] = clock_time(hit.start_seconds)
    text = hit.image_caption if hit.block_type == "image" else hit.content
    return f"<block{_attributes(values)}>{escape(text or '', quote=False)}</block>"


def _attributes(values: Mapping[str, object]) -> str:
    return "".join(f' {name}="{escape(str(value))}"' for name, value in values.items() if value)
