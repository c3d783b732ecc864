"""Links to the originals of documents and to moments of recordings. Pure."""

import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

_MAX_ADDRESS_CHARS = 2000  # All browsers and proxies accept URLs of this length.
_YOUTUBE = re.compile(r"(?:(?:www|m)\.)?(?:youtube\.com|youtu\.be)", re.IGNORECASE)
_PLAIN = re.compile(r"[\x21-\x7e]+")  # printable ASCII without white space

# Characters that are not percent-encoded. Others could end a Markdown link or a sentence.
_SAFE = "%/:=&?~#+!$,;@*-._"


def clock_time(seconds: float) -> str:
    """Format a time as `01:23` or `1:02:03`. Fractions are truncated, so that a link never starts after the
    quoted words.
    """
    whole = max(0, int(seconds))
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def web_address(url: str | None) -> str | None:
    """Return `url` without surrounding white space if it is an http or https URL that is safe to link. Return
    None otherwise.
    """
    text = (url or "").strip()
    is_plain = len(text) <= _MAX_ADDRESS_CHARS and not text.startswith("/")
    return text if is_plain and moment_url(text, 0) is not None else None


def source_address(url: str | None, filename: str, page_number: int | None) -> str | None:
    """Return the URL of the original document, with a page anchor for PDF files. Return None if the URL is
    missing or unsafe.

    Browsers, and SharePoint's own viewer, open a PDF at `#page=3`.
    """
    address = web_address(url)
    if address is None or page_number is None or not filename.lower().endswith(".pdf"):
        return address
    return f"{address.partition('#')[0]}#page={page_number}"


def moment_url(url: str | None, seconds: float) -> str | None:
    """Return the URL of a recording that starts playback at `seconds`, or None if the URL is missing or
    unsafe.

    `url` may be a path of the app or a web URL. Players read `#t=83`; YouTube expects a parameter.

    Source: Media Fragments URI 1.0, section 4.2.1.
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
