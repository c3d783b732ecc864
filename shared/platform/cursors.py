"""Opaque pagination cursors. Pure."""

import base64
import re

from shared.platform.errors import CallerError


def write_cursor(place: str) -> str:
    """Encode a position in a list as an opaque cursor."""
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def read_cursor(cursor: str, form: re.Pattern[str]) -> str:
    """Return the position encoded in a cursor.

    Raises:
        CallerError: `write_cursor` did not create the cursor, or the position doesn't match `form`.
    """
    try:
        place = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except ValueError:
        place = ""
    if not form.fullmatch(place):
        raise CallerError("The cursor is invalid.", "Send the cursor of the previous page unchanged.")
    return place
