"""Cursors of lists: a position as text, opaque to callers. Pure."""

import base64
import re

from shared.platform.errors import CallerError


def write_cursor(place: str) -> str:
    """Encode a position as a cursor."""
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def read_cursor(cursor: str, form: re.Pattern[str]) -> str:
    """Decode a cursor that `write_cursor` returned.

    Raises:
        CallerError: the text is not a cursor, or its position doesn't match `form`.
    """
    try:
        place = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except ValueError:
        place = ""
    if not form.fullmatch(place):
        raise CallerError("Invalid cursor.", "Send the previous page's cursor unchanged.")
    return place
