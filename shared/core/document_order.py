"""The order in which documents are listed, and cursors: places in it that a page goes on behind. Pure.

Those in work or failed come by name, then the complete ones, newest first; ids tell equal ones apart.
"""

import base64
import binascii
from datetime import UTC, datetime

from pydantic import AwareDatetime, Field, ValidationError

from shared.core.odata import quote
from shared.errors import CallerError
from shared.models.base import Model


class Place(Model):
    """The last document of a page: one in work by its name, a complete one by its date."""

    doc_id: str = Field(min_length=1, max_length=100)
    filename: str | None = None
    upload_date: AwareDatetime | None = None


def write_cursor(place: Place) -> str:
    """The place for callers, to whom it says nothing."""
    text = place.model_dump_json(exclude_none=True)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> Place | None:
    """The place; None of an empty cursor: the list begins.

    Raises:
        CallerError: the cursor is none of this list.
    """
    if not cursor:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars="-_", validate=True)
        place = Place.model_validate_json(text)
    except (binascii.Error, ValidationError, ValueError):
        place = None
    if place is None or (place.filename is None) == (place.upload_date is None):
        raise CallerError("The cursor is not one of this list.", "Send the cursor of the page before.")
    return place


def older_than(upload_date: datetime, doc_id: str) -> str:
    """OData for complete documents behind this one, in the order of the list."""
    instant = upload_date.astimezone(UTC).isoformat().replace("+00:00", "Z")
    same = f"upload_date eq {instant} and doc_id gt {quote(doc_id)}"
    return f"upload_date lt {instant} or ({same})"
