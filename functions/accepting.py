"""Which kind of answer a caller prefers. Pure. Source: RFC 9110, section 12.5.1."""

import re
from collections.abc import Sequence

_QUALITY = re.compile(r"q\s*=\s*([01](?:\.\d{0,3})?)\Z", re.IGNORECASE)
_MAX_CHARS = 1000  # browsers send a hundred


def preferred(accept: str | None, offered: Sequence[str]) -> str:
    """The offered media type that the caller likes best; the first of equals, and of those never heard of."""
    ranges = [_range(part) for part in (accept or "*/*")[:_MAX_CHARS].split(",") if part.strip()]
    return max(offered, key=lambda kind: _quality(kind, ranges))


def _quality(kind: str, ranges: Sequence[tuple[str, float]]) -> float:
    """By the most precise of the ranges that fit."""
    fitting = [(len(named), quality) for named, quality in ranges if _fits(kind, named)]
    return max(fitting, default=(0, 0.0))[1]


def _fits(kind: str, named: str) -> bool:
    if named in ("*/*", "*", kind):
        return True
    return named.endswith("/*") and kind.startswith(named[:-1])


def _range(part: str) -> tuple[str, float]:
    named, *parameters = (one.strip() for one in part.split(";"))
    qualities = [float(found[1]) for one in parameters if (found := _QUALITY.match(one))]
    return named.lower(), qualities[0] if qualities else 1.0
