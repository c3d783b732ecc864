"""Content negotiation, byte ranges and conditional requests (RFC 9110, sections 8 and 12 to 14).

The ETag of an editable resource is a digest of the caller's view of it, so it changes with the view.
"""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence

from pydantic import BaseModel

from shared.platform.blobs import ByteSpan
from shared.platform.errors import PreconditionFailedError, RangeError

_QUALITY = re.compile(r"q\s*=\s*([01](?:\.\d{0,3})?)\Z", re.IGNORECASE)
_MAX_CHARS = 1000  # longer headers are not parsed completely; browsers send about 100 characters


def preferred_type(accept: str | None, offered: Sequence[str]) -> str:
    """Return the offered media type to which the Accept header gives the highest weight. Ties go to the type
    offered first.
    """
    ranges = [_range(part) for part in (accept or "*/*")[:_MAX_CHARS].split(",") if part.strip()]

    def quality_of(kind: str) -> float:
        names = ("*/*", "*", kind, f"{kind.split('/')[0]}/*")
        matches = [(len(name), quality) for name, quality in ranges if name in names]
        return max(matches)[1] if matches else 0.0  # the most specific matching range decides

    return max(offered, key=quality_of)


def acceptable_coding(accept_encoding: str | None, offered: Sequence[str]) -> str | None:
    """Return the first offered content coding that the Accept-Encoding header allows, or None if the response
    must not be encoded.

    A weight of zero refuses a coding. Source: RFC 9110, section 12.5.3.
    """
    weights = dict(_range(part) for part in (accept_encoding or "")[:_MAX_CHARS].split(","))
    return next((coding for coding in offered if weights.get(coding, weights.get("*", 0.0)) > 0), None)


def _range(part: str) -> tuple[str, float]:
    """Split an entry of an Accept header into its lower-case name and its weight, which defaults to 1."""
    name, *parameters = (item.strip() for item in part.split(";"))
    weights = [float(match[1]) for parameter in parameters if (match := _QUALITY.match(parameter))]
    return name.lower(), weights[0] if weights else 1.0


_ONE_SPAN = re.compile(r"bytes=(\d{0,18})-(\d{0,18})\Z")


def holds(if_range: str | None, etag: str) -> bool:
    """Return whether a Range header applies. It doesn't if the If-Range header names another version than
    `etag`.

    `etag` is unquoted. Dates and weak ETags never match.
    """
    return if_range is None or if_range.strip() == f'"{etag}"'


def is_known(if_none_match: str | None, etag: str) -> bool:
    """Return whether an If-None-Match header contains the ETag of the current version (RFC 9110, section
    13.1.2).
    """
    tags = [tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")]
    return f'"{etag}"' in tags


def byte_span(header: str | None, size_bytes: int) -> ByteSpan | None:
    """Parse a Range header. Return None if the whole file should be sent.

    Other units and multiple ranges are ignored, as the RFC allows.

    Raises:
        RangeError: the range starts after the end of the file.
    """
    matched = _ONE_SPAN.match(header.strip()) if header else None
    if matched is None or matched[1] == matched[2] == "":
        return None
    if matched[1] == "":  # `bytes=-N` requests the last N bytes
        first, last = max(0, size_bytes - int(matched[2])), size_bytes - 1
    else:
        first = int(matched[1])
        last = min(int(matched[2]), size_bytes - 1) if matched[2] else size_bytes - 1
    if matched[1] and matched[2] and int(matched[2]) < first:
        return None
    if first > last:
        raise RangeError(
            f"The range starts after the end of the file, which has {size_bytes} bytes.",
            "Request a range within the file.",
        )
    return ByteSpan(first=first, length=last - first + 1)


_STRONG = re.compile(r'(?<![/\w])"([\x21\x23-\x7e]*)"')
_TAG_CHARS = 32
PASSING = frozenset({"history", "is_processing"})
"""Fields of a document that change without a change by a person: the duration of the current phase, and
whether the work that a change requires has ended.
"""


def etag_of(view: BaseModel, leaving_out: Collection[str] = ()) -> str:
    """Return the unquoted ETag of a view. Fields in `leaving_out` don't affect it."""
    content = view.model_dump_json(exclude=set(leaving_out))
    return hashlib.sha256(content.encode()).hexdigest()[:_TAG_CHARS]


def is_conditional(headers: Mapping[str, str]) -> bool:
    """Return whether the If-Match header limits a change to certain versions. A missing header or `*`
    doesn't.
    """
    return headers.get("if-match", "*").strip() != "*"


def require_match(headers: Mapping[str, str], etag: str) -> None:
    """Raise an error if the request has an If-Match header without the current ETag. Weak ETags never match.

    Raises:
        PreconditionFailedError: the ETag is outdated.
    """
    if is_conditional(headers) and etag not in _STRONG.findall(headers["if-match"]):
        raise PreconditionFailedError(
            "The resource has changed since you read it, so If-Match doesn't match.",
            "Read the resource again and reapply your change.",
        )
