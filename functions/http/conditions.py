"""Headers that ask for a media type, a part of a file, or a version. Source: RFC 9110, sections 8, 12 to 14.

An ETag of what can be edited is a digest of what the caller is shown, so it changes whenever that does.
"""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence

from pydantic import BaseModel

from shared.platform.blobs import ByteSpan
from shared.platform.errors import PreconditionFailedError, RangeError

_QUALITY = re.compile(r"q\s*=\s*([01](?:\.\d{0,3})?)\Z", re.IGNORECASE)
_MAX_CHARS = 1000  # browsers send a hundred


def preferred(accept: str | None, offered: Sequence[str]) -> str:
    """The offered media type that the caller likes best; the first of equals, and of those never heard of."""
    ranges = [_range(part) for part in (accept or "*/*")[:_MAX_CHARS].split(",") if part.strip()]

    def quality_of(kind: str) -> float:
        names = ("*/*", "*", kind, f"{kind.split('/')[0]}/*")
        fitting = [(len(named), quality) for named, quality in ranges if named in names]
        return max(fitting)[1] if fitting else 0.0  # the most precise range decides

    return max(offered, key=quality_of)


def acceptable_coding(accept_encoding: str | None, offered: Sequence[str]) -> str | None:
    """Return the first offered content coding that the caller accepts; None means unencoded.

    A weight of zero refuses a coding. Source: RFC 9110, section 12.5.3.
    """
    weights = dict(_range(part) for part in (accept_encoding or "")[:_MAX_CHARS].split(","))
    return next((coding for coding in offered if weights.get(coding, weights.get("*", 0.0)) > 0), None)


def _range(part: str) -> tuple[str, float]:
    named, *parameters = (one.strip() for one in part.split(";"))
    qualities = [float(found[1]) for one in parameters if (found := _QUALITY.match(one))]
    return named.lower(), qualities[0] if qualities else 1.0


_ONE_SPAN = re.compile(r"bytes=(\d{0,18})-(\d{0,18})\Z")


def holds(if_range: str | None, etag: str) -> bool:
    """Whether a Range counts: only for the version of which the caller has the other bytes already.

    `etag` is without quotes. A date is no strong validator here, and a weak etag never is.
    """
    return if_range is None or if_range.strip() == f'"{etag}"'


def is_known(if_none_match: str | None, etag: str) -> bool:
    """Whether the caller has this very version. Source: RFC 9110, section 13.1.2."""
    known = [mark.strip().removeprefix("W/") for mark in (if_none_match or "").split(",")]
    return f'"{etag}"' in known


def byte_span(header: str | None, size_bytes: int) -> ByteSpan | None:
    """The bytes that are asked for; None = all of them.

    What is not one span of bytes is ignored, as the RFC allows.

    Raises:
        RangeError: the span lies behind the end of the file.
    """
    matched = _ONE_SPAN.match(header.strip()) if header else None
    if matched is None or matched[1] == matched[2] == "":
        return None
    if matched[1] == "":  # the last N bytes
        first, last = max(0, size_bytes - int(matched[2])), size_bytes - 1
    else:
        first = int(matched[1])
        last = min(int(matched[2]), size_bytes - 1) if matched[2] else size_bytes - 1
    if matched[1] and matched[2] and int(matched[2]) < first:
        return None
    if first > last:
        raise RangeError(f"The file has {size_bytes} bytes.", "Ask for bytes within it.")
    return ByteSpan(first=first, length=last - first + 1)


_STRONG = re.compile(r'(?<![/\w])"([\x21\x23-\x7e]*)"')
_TAG_CHARS = 32
PASSING = frozenset({"history"})
"""Of a document: the seconds of the current phase. Each phase that ends changes the status, too."""


def etag_of(view: BaseModel, leaving_out: Collection[str] = ()) -> str:
    """The ETag, without its quotes. `leaving_out`: fields that tell of time that passes, and of no change."""
    content = view.model_dump_json(exclude=set(leaving_out))
    return hashlib.sha256(content.encode()).hexdigest()[:_TAG_CHARS]


def is_conditional(headers: Mapping[str, str]) -> bool:
    """Whether a change is to hold for one version only."""
    return headers.get("if-match", "*").strip() != "*"


def require_match(headers: Mapping[str, str], etag: str) -> None:
    """Let a change continue only if the caller has seen the state that it changes. A weak ETag never matches.

    Raises:
        PreconditionFailedError: it has another ETag by now.
    """
    if is_conditional(headers) and etag not in _STRONG.findall(headers["if-match"]):
        raise PreconditionFailedError(
            "It was changed since you read it (If-Match).",
            "Read it again, and repeat the change if it still fits.",
        )
