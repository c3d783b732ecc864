"""Types of the values of settings, whose validators reject mistakes."""

import re
from collections.abc import Callable
from typing import Annotated
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator

from shared.platform.database_sources import database_sources
from shared.platform.listed_people import listed_people

_MIN_LETTERS = 10  # required distinct characters in a secret; 32 random hexadecimal digits have 14 on average
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_HEADER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
_HEADER = re.compile(r"\s*[A-Za-z0-9][A-Za-z0-9_-]{0,99}\s*=[\x20-\x2b\x2d-\x7e]*")
_HOST = re.compile(r"\.?[\w-]+(\.[\w-]+)*(:\d{1,5})?")
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def listed(text: str) -> tuple[str, ...]:
    """Split a comma-separated list into items, stripped of white space. Empty items are dropped."""
    return tuple(item for part in text.split(",") if (item := part.strip()))


def _known_timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("not a time zone in the IANA database, such as Europe/Berlin") from None
    return name


def _databases(text: str) -> str:
    database_sources(text)
    return text


def _people(text: str) -> str:
    listed_people(text)
    return text


def _is_http(address: str) -> bool:
    """Return whether the text is an HTTP(S) URL with a host name and without credentials, query or
    fragment.
    """
    parts = urlsplit(address)
    names_host = parts.scheme in ("http", "https") and bool(parts.hostname)
    return names_host and "@" not in parts.netloc and not parts.query and not parts.fragment


def is_encrypted(address: str) -> bool:
    """Return whether secrets may be sent to the URL: it uses https, or its host is this machine."""
    parts = urlsplit(address)
    return parts.scheme == "https" or parts.hostname in _LOOPBACK


def _checked(is_right: Callable[[str], object], complaint: str) -> AfterValidator:
    """Return a validator that rejects values for which `is_right` is false, with `complaint` as the
    reason.
    """

    def check(value: str) -> str:
        if not is_right(value):
            raise ValueError(complaint)
        return value

    return AfterValidator(check)


HttpUrl = Annotated[str, _checked(_is_http, "not a valid HTTP(S) URL")]
SafeUrl = Annotated[HttpUrl, _checked(is_encrypted, "not an https URL")]
Origin = Annotated[
    SafeUrl, _checked(lambda url: urlsplit(url).path in ("", "/"), "not an https URL without a path")
]
UrlList = Annotated[
    str,
    _checked(
        lambda text: all(_is_http(address) and is_encrypted(address) for address in listed(text)),
        "not a comma-separated list of https URLs",
    ),
]
EntraId = Annotated[str, _checked(_GUID.fullmatch, "not an Entra ID GUID")]
OneEntraId = Annotated[
    str,
    _checked(
        lambda ids: all(map(_GUID.fullmatch, listed(ids))) and len(listed(ids)) <= 1, "not a single GUID"
    ),
]
HostList = Annotated[
    str, _checked(lambda hosts: all(map(_HOST.fullmatch, listed(hosts))), "not a list of host names")
]
Secret = Annotated[str, _checked(lambda secret: len(set(secret)) >= _MIN_LETTERS, "too easy to guess")]
HeaderName = Annotated[str, _checked(_HEADER_NAME.fullmatch, "not a valid header name")]
HeaderValue = Annotated[str, _checked(str.isprintable, "contains characters that are not allowed in headers")]
HeaderList = Annotated[
    str,
    _checked(lambda text: all(map(_HEADER.fullmatch, filter(None, text.split(",")))), "not name=value pairs"),
]
InsightsConnection = Annotated[
    str, _checked(lambda text: "instrumentationkey=" in text.lower(), "not a connection string")
]
TimezoneName = Annotated[str, AfterValidator(_known_timezone)]
"""Name of a time zone in the IANA database, such as `Europe/Berlin`."""
DatabaseList = Annotated[str, AfterValidator(_databases)]
PersonList = Annotated[str, AfterValidator(_people)]
