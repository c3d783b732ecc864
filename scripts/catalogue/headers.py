"""The headers that the app reads and sets. `make docs` writes them into docs/internals/headers.md."""

from collections.abc import Mapping
from typing import NamedTuple


class Header(NamedTuple):
    """A header's meaning, and where it applies; empty means everywhere."""

    text: str
    applies_to: str = ""


REQUEST_HEADERS: Mapping[str, Header] = {
    "Authorization": Header(
        "a development token; the Bot Service's token", "on one machine, and for the bot"
    ),
    "X-MS-CLIENT-PRINCIPAL": Header("who is signed in; the platform strips a client's own", "in Azure"),
    "X-Request-Id": Header("1-64 letters, digits, `.`, `_`, `-`: the id in the log; else one is made"),
    "traceparent": Header("a W3C trace to continue"),
    "Content-Type": Header("`multipart/form-data`; `application/json`", "uploads, `POST /messages`"),
    "Content-Length": Header("a file that is too large is refused before it is sent", "uploads"),
    "Accept": Header("`text/html`, `application/json`, `text/markdown`", "pages, `readable`, `POST /mcp`"),
    "MCP-Protocol-Version": Header("the protocol's version", "`POST /mcp`"),
    "Mcp-Method": Header("the method, as in the body", "`POST /mcp`"),
    "Mcp-Name": Header("the tool or resource, as in the body", "`POST /mcp`"),
    "Prefer": Header("`respond-async`; `wait=60`", "`POST /chat`, `POST /summaries`"),
    "Idempotency-Key": Header("[sending again](../api.md#sending-again)", "`POST` that makes something"),
    "Last-Event-ID": Header("continue after this event", "streams"),
    "If-Match": Header("only if unchanged; else 412", "changes of documents and threads"),
    "If-None-Match": Header("304 if unchanged", "what has an `ETag`"),
    "Range": Header("one range: 206, or 416", "`GET …/content`"),
    "If-Range": Header("the whole file if it changed", "with `Range`"),
    "Sec-Fetch-Site": Header("a page of another site is refused (403)", "all but `GET`, from browsers"),
    "Origin": Header("the same", "older browsers"),
    "X-Forwarded-Host": Header("the host that `Origin` may name", "behind a proxy"),
    "X-Forwarded-For": Header(
        "its last address goes into the [audit trail](../api.md#audit-trail)", "all, in Azure"
    ),
    "Accept-Encoding": Header("Brotli, gzip, or neither", "files of the web page"),
}

RESPONSE_HEADERS: Mapping[str, Header] = {
    "X-Request-Id": Header("the id in the log"),
    "X-Run-Id": Header("the run", "`POST /chat`, streams of runs"),
    "Location": Header("where the thing, or its progress, is", "201, 202, `POST /chat`"),
    "Idempotency-Replayed": Header("`true`", "repeats under a key"),
    "RateLimit-Limit": Header("calls in a minute", "counted calls"),
    "RateLimit-Remaining": Header("how many are left now", "counted calls"),
    "RateLimit-Reset": Header("seconds until all are back", "counted calls"),
    "Allow": Header("the methods of the address", "405"),
    "Retry-After": Header("seconds to wait, if known", "429, 503"),
    "X-Max-Body-Bytes": Header("its limit", "413 of a body or file"),
    "WWW-Authenticate": Header('`Bearer realm="groundwork"`', "401"),
    "ETag": Header("the version", "documents, threads, files, pictures, the description"),
    "Link": Header("the next part", "a part of a text in Markdown"),
    "Vary": Header("`Accept`; `Accept-Encoding`", "pages, `readable`; files of the web page"),
    "Content-Encoding": Header("`br` or `gzip`", "files of the web page"),
    "Cross-Origin-Opener-Policy": Header("`same-origin`", "the web page"),
    "Cache-Control": Header(
        "`private, no-store`; with an `ETag`, `private, no-cache`; on the description `no-cache`"
    ),
    "X-Accel-Buffering": Header("`no`: proxies must not buffer", "streams"),
    "Accept-Ranges": Header("`bytes`", "files"),
    "Content-Range": Header("which bytes, of how many", "206"),
    "Content-Disposition": Header("shown or saved, and the name", "files, pictures"),
    "X-Content-Type-Options": Header("`nosniff`"),
    "Content-Security-Policy": Header("what a browser may load", "pages, pictures, `/docs`"),
    "Referrer-Policy": Header("`no-referrer`", "pages"),
}
