"""Rows of documents for tests that match names and titles."""

from datetime import UTC, datetime
from typing import Any

from shared.retrieval.models import DocumentRecord


def named_record(
    filename: str, title: str = "", document_type: str = "report", **fields: Any
) -> DocumentRecord:
    """Return the row of a document whose id is its file name."""
    return DocumentRecord(
        doc_id=filename,
        filename=filename,
        title=title,
        document_type=document_type,
        upload_date=datetime(2026, 1, 1, tzinfo=UTC),
        **fields,
    )
