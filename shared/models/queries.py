"""Parameters of the API that stand in an address or a header. Absent ones have their default."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from shared.models.base import Model

_DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)
# The longest name that the storage takes, 1,024 characters of three bytes, makes a cursor of less than 4,300;
# the Functions host takes a request line of 8,192 bytes (Kestrel, MaxRequestLineSize).
_MAX_CURSOR_CHARS = 6000


def _plain(text: Any) -> Any:
    """Python reads more as a number than people mean: `1_0`, ` 1`, digits of other scripts."""
    if isinstance(text, str) and not _DIGITS.fullmatch(text):
        raise ValueError("takes a whole number in plain digits")
    return text


Page = Annotated[int, Field(ge=1, le=100), BeforeValidator(_plain)]
Hours = Annotated[int, Field(ge=1, le=168), BeforeValidator(_plain)]  # a week, as functions/metrics.py


Number = Annotated[int, Field(ge=0, le=999_999_999), BeforeValidator(_plain)]


class ListQuery(Model):
    """Of lists that are read a page at a time."""

    limit: Page = Field(default=50, description="How many at most.")
    cursor: str = Field(default="", description="The `cursor` of the page before, unchanged.")


class MessagesQuery(Model):
    """Of a thread's messages."""

    limit: Page = Field(default=20, description="How many at most.")
    cursor: str = Field(
        default="", pattern=r"^([1-9][0-9]{0,7})?$", description="The `cursor` of the page before, unchanged."
    )


class DocumentsQuery(Model):
    """Of the list of documents: each field but the last two is metadata that a document must have."""

    document_type: str = Field(default="", description="Such as `manual`.")
    department: str = Field(default="", description="Department that the document belongs to.")
    project_id: str = Field(default="", description="Project that it belongs to.")
    language: str = Field(default="", description="ISO 639-1 code.")
    author: str = Field(default="", description="Author as extracted or corrected.")
    filename: str = Field(default="", description="Its whole file name.")
    tags: str = Field(default="", description="One of its tags.")
    limit: Page = Field(default=100, description="How many at most.")
    cursor: str = Field(
        default="", max_length=_MAX_CURSOR_CHARS, description="The `cursor` of the page before, unchanged."
    )


class CitationQuery(Model):
    """Of what a citation leads to. One that is not the caller's own marks nothing."""

    run: str = Field(default="", max_length=64, description="The run whose answer cites it.")
    n: Number = Field(default=0, description="The citation's number.")


class ReadableQuery(CitationQuery):
    """Of the readable view: by cursor, else by citation, page or moment; else from the beginning."""

    cursor: str = Field(
        default="", pattern=r"^([0-9]{1,7})?$", description="`cursor` or `previous_cursor` of a view."
    )
    page: Number = Field(default=0, description="The page to begin at.")
    t: Number = Field(default=0, description="The moment of a recording to begin at, in seconds.")


class MetricsQuery(Model):
    """Of the metrics of sub-agents."""

    hours: Hours = Field(default=24, description="How many hours back.")


class QualityQuery(Model):
    """Of the quality of answers in use."""

    hours: Annotated[int, Field(ge=1, le=720), BeforeValidator(_plain)] = Field(  # 30 days, as runs are kept
        default=24, description="How many hours back."
    )
    project_id: str = Field(default="", max_length=128, description="Of one project alone.")


class ResumeHeaders(Model):
    """Of streams that can be gone on with."""

    last_event_id: str = Field(
        default="",
        alias="Last-Event-ID",
        pattern=r"^[0-9]{0,18}$",
        description="Number of the last event received; what follows is sent.",
    )


class KeyHeaders(Model):
    """Of requests that make something, and may be sent again."""

    idempotency_key: str = Field(
        default="",
        alias="Idempotency-Key",
        pattern=r"^[\x21-\x7e]{1,200}$",
        description="The same request under the same key within 24 hours makes one thing; another is a 422.",
    )


class ChatHeaders(KeyHeaders):
    """Of a question."""

    prefer: str = Field(default="", alias="Prefer", description="`respond-async` answers 202 at once.")
    last_event_id: str = Field(
        default="",
        alias="Last-Event-ID",
        pattern=r"^[0-9]{0,18}$",
        description="Where the question was sent before under this key: what follows is sent.",
    )


class SummaryHeaders(KeyHeaders):
    """Of an order for a summary."""

    prefer: str = Field(
        default="", alias="Prefer", description="`wait=60` waits so many seconds for the result."
    )


class FileHeaders(Model):
    """Of a file that is read in part."""

    range: str = Field(default="", alias="Range", description="One span, such as `bytes=0-1023`.")
    if_range: str = Field(
        default="", alias="If-Range", description="ETag of the version whose other bytes the caller has."
    )


class CachedHeaders(Model):
    """Of something that a caller may have already."""

    if_none_match: str = Field(default="", alias="If-None-Match", description="ETags that the caller has.")


class IfMatchHeaders(Model):
    """Of a change that holds only for the version that the caller has seen."""

    if_match: str = Field(default="", alias="If-Match", description="ETag that the thing must still have.")


class PathNames(Model):
    """The names in paths."""

    run_id: str = Field(min_length=1, description="As POST /chat tells it in `X-Run-Id`.")
    thread_id: str = Field(min_length=1, description="As POST /threads or a run tells it.")
    summary_id: str = Field(min_length=1, description="As POST /summaries tells it.")
    doc_id: str = Field(min_length=1, description="As lists, results and citations tell it.")
    name: str = Field(min_length=1, description="File name of a picture, as answers refer to it.")
    page: str = Field(pattern=r"^[1-9][0-9]{0,6}$", description="Number of a page, counted from 1.")
    asset: str = Field(min_length=1, description="A file of the page.")
    user_id: str = Field(min_length=1, description="As GET /me tells its caller: the object id in Entra ID.")


class ReplyHeaders(Model):
    """Headers of answers."""

    location: str = Field(alias="Location", description="Where to look from now on.")
    run_id: str = Field(alias="X-Run-Id", description="The run that answers.")
    etag: str = Field(alias="ETag", description="Changes with the content.")
    content_range: str = Field(
        alias="Content-Range", pattern=r"^bytes [0-9]+-[0-9]+/[0-9]+$", description="Which bytes these are."
    )
    accept_ranges: str = Field(alias="Accept-Ranges", description="`bytes`.")
    www_authenticate: str = Field(alias="WWW-Authenticate", description="How to say who is asking.")
    replayed: str = Field(
        alias="Idempotency-Replayed", pattern=r"^true$", description="An earlier request made this."
    )
    limit: str = Field(alias="RateLimit-Limit", pattern=r"^[0-9]+$", description="Calls in a minute.")
    remaining: str = Field(
        alias="RateLimit-Remaining", pattern=r"^[0-9]+$", description="Calls that could be made at once."
    )
    reset: str = Field(
        alias="RateLimit-Reset", pattern=r"^[0-9]+$", description="Seconds until all are there again."
    )
    max_body_bytes: str = Field(
        alias="X-Max-Body-Bytes", pattern=r"^[0-9]+$", description="How large the body or file may be."
    )
    retry_after: str = Field(alias="Retry-After", pattern=r"^[0-9]+$", description="Seconds to wait.")
