"""Metadata corrections made by users, which override extracted values."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from shared.documents.requests import MetadataCorrection
from shared.retrieval.models import HOURS_OF_PRECISION, DocumentRecord

_PRINTED_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")


def with_corrections(record: DocumentRecord, corrections: Mapping[str, object]) -> DocumentRecord:
    """Return a copy of the record with the user's corrections applied. Its `edited_fields` names the
    corrected fields.
    """
    valid = {field: value for field, value in corrections.items() if field in MetadataCorrection.model_fields}
    changed: dict[str, object] = {**valid, "edited_fields": tuple(sorted(valid))}
    if isinstance(date := valid.get("document_date"), str):
        changed["document_date"] = stored_date(date)
    return record.model_copy(update=changed)


def stored_date(text: str | None) -> datetime | None:
    """Return the UTC time that represents a year, month or day in ISO 8601 format. Return None if the text
    has another format.

    A year or month is stored as its first day. The hour keeps the precision (`HOURS_OF_PRECISION`).
    """
    match = _PRINTED_DATE.fullmatch((text or "").strip())
    if match is None:
        return None
    parts = [int(part) for part in match.groups() if part]
    year, month, day = (*parts, 1, 1)[:3]
    try:
        return datetime(year, month, day, HOURS_OF_PRECISION[len(parts) - 1], tzinfo=UTC)
    except ValueError:
        # The text looks like a date but isn't a valid one, such as "2024-13".
        return None
