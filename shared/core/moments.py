"""Moments of recordings: how they are written, and the address that begins playing there. Pure."""

import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

MAX_ADDRESS_CHARS = 2000  # what browsers and proxies take everywhere
_YOUTUBE = re.compile(r"(?:(?:www|m)\.)?(?:youtube\.com|youtu\.be)", re.IGNORECASE)
_PLAIN = re.compile(r"[\x21-\x7e]+")  # no blanks, no control characters, nothing outside ASCII
# What a Markdown link or a sentence would end at is written in its percent form.
_SAFE = "%/:=&?~#+!$,;@*-._"


def clock_time(seconds: float) -> str:
    """`01:23`, and `1:02:03` from an hour on. Fractions are cut off: a link may begin early, never late."""
    whole = max(0, int(seconds))
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def web_address(url: str | None) -> str | None:
    """The address, if it is a plain one of the web; None for anything else, such as `javascript:`."""
    text = (url or "").strip()
    is_plain = len(text) <= MAX_ADDRESS_CHARS and not text.startswith("/")
    return text if is_plain and moment_url(text, 0) is not None else None


def moment_url(url: str | None, seconds: float) -> str | None:
    """The address of a recording, or of our own API, with the moment at which to begin.

    None where `url` is none of ours and no plain web address. Players read `#t=83`; YouTube wants it as a
    parameter. Source: Media Fragments URI 1.0, section 4.2.1.
    """
    if not url or not _PLAIN.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return None
    is_ours = not parts.scheme and not parts.netloc and url.startswith("/") and not url.startswith("//")
    if not is_ours and not (parts.scheme in ("http", "https") and host):
        return None
    start = max(0, int(seconds))
    if _YOUTUBE.fullmatch(host):
        query = [(name, value) for name, value in parse_qsl(parts.query) if name not in ("t", "start")]
        timed = parts._replace(query=urlencode([*query, ("t", f"{start}s")]), fragment="")
    else:
        timed = parts._replace(fragment=f"t={start}")
    return quote(urlunsplit(timed), safe=_SAFE)
