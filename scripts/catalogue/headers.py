"""Descriptions of the HTTP headers that the app reads and sets. `make docs` writes them to
docs/internals/headers.md.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Header(NamedTuple):
    """The meaning of a header. `applies_to` names the requests or responses that have it; empty means all."""

    text: str
    applies_to: str = ""


REQUEST_HEADERS: Mapping[str, Header] = {
    "Authorization": Header("a development token, or the Bot Service's", "locally, and for the bot"),
    "X-MS-CLIENT-PRINCIPAL": Header("the signed-in user; the platform removes clients' values", "in Azure"),
    "X-Request-Id": Header("the id in the log: 1-64 letters, digits, `.`, `_`, `-`"),
    "traceparent": Header("a W3C trace context to continue"),
    "Content-Type": Header("`multipart/form-data`; `application/json`", "uploads, `POST /messages`"),
    "Content-Length": Header("rejects a file that is too large", "uploads"),
    "Accept": Header("`text/html`, `application/json`, `text/markdown`", "pages, `readable`, `POST /mcp`"),
    "MCP-Protocol-Version": Header("the protocol version", "`POST /mcp`"),
    "Mcp-Method": Header("must match the body", "`POST /mcp`"),
    "Mcp-Name": Header("must match the body", "`POST /mcp`"),
    "Prefer": Header("`respond-async`; `wait=60`", "`POST /chat`, `POST /summaries`"),
    "Idempotency-Key": Header(
        "[sending again](../api.md#sending-again)", "`POST` requests that create a resource"
    ),
    "Last-Event-ID": Header("continues after this event", "streams"),
    "If-Match": Header("412 if the resource has changed", "changes of documents and threads"),
    "If-None-Match": Header("304 if unchanged", "resources with an `ETag`"),
    "Range": Header("a single range; 206, or 416 if outside the file", "`GET …/content`"),
    "If-Range": Header("sends the whole file if it has changed", "with `Range`"),
    "Sec-Fetch-Site": Header(
        "requests from pages of other sites get 403", "browsers; all methods except `GET`"
    ),
    "Origin": Header("as `Sec-Fetch-Site`", "older browsers"),
    "X-Forwarded-Host": Header("the host that `Origin` must match", "behind a proxy"),
    "X-Forwarded-For": Header(
        "the last address goes into the [audit trail](../api.md#audit-trail)", "in Azure"
    ),
    "Accept-Encoding": Header("selects Brotli, gzip or no compression", "files of the web page"),
}

RESPONSE_HEADERS: Mapping[str, Header] = {
    "X-Request-Id": Header("the id in the log"),
    "X-Run-Id": Header("the id of the run", "`POST /chat`, streams of runs"),
    "Location": Header("the URL of the resource or its progress", "201, 202, `POST /chat`"),
    "Idempotency-Replayed": Header("`true`", "retries with an `Idempotency-Key`"),
    "RateLimit-Limit": Header("calls per minute", "counted calls"),
    "RateLimit-Remaining": Header("calls that may be made now", "counted calls"),
    "RateLimit-Reset": Header("seconds until the allowance is full", "counted calls"),
    "Allow": Header("methods that the URL supports", "405"),
    "Retry-After": Header("seconds to wait, if known", "429, 503"),
    "X-Max-Body-Bytes": Header("the maximum size in bytes", "413 for a body or file"),
    "WWW-Authenticate": Header('`Bearer realm="groundwork"`', "401"),
    "ETag": Header("the version", "documents, threads, files, pictures, the description"),
    "Link": Header("the next part of the text", "parts of a text in Markdown"),
    "Vary": Header("`Accept`; `Accept-Encoding`", "pages, `readable`; files of the web page"),
    "Content-Encoding": Header("`br` or `gzip`", "files of the web page"),
    "Cross-Origin-Opener-Policy": Header("`same-origin`", "the web page"),
    "Cache-Control": Header(
        "`private, no-store`; with an `ETag`, `private, no-cache`; on the description `no-cache`"
    ),
    "X-Accel-Buffering": Header("`no`: proxies must not buffer", "streams"),
    "Accept-Ranges": Header("`bytes`", "files"),
    "Content-Range": Header("the byte range and the total size", "206"),
    "Content-Disposition": Header("`inline` or `attachment`, with the file name", "files, pictures"),
    "X-Content-Type-Options": Header("`nosniff`"),
    "Content-Security-Policy": Header("restricts what a browser may load", "pages, pictures, `/docs`"),
    "Referrer-Policy": Header("`no-referrer`", "pages"),
}
