"""Names of time zones in requests and settings. Pure."""

from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator


def _known(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("no time zone of the IANA database, such as Europe/Berlin") from None
    return name


TimezoneName = Annotated[str, AfterValidator(_known)]
"""An IANA name, such as `Europe/Berlin`."""
