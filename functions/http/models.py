"""Query parameters, headers and stream events that several routes share. Models of a single route are defined
next to it.
"""

import re
from datetime import date
from typing import Annotated, Any, get_args

from fastapi import Path
from pydantic import BeforeValidator, Field, JsonValue
from starlette.convertors import Convertor, register_url_convertor

from shared.platform.models import Model
from shared.platform.search import DateRange, Filters
from shared.runs.log_lines import EventName

_DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)


def _plain(text: Any) -> Any:
    """Raise `ValueError` for number formats that `int` accepts but the API doesn't, such as `1_0`, ` 1` and
    digits of other scripts. Return other values unchanged.
    """
    if isinstance(text, str) and not _DIGITS.fullmatch(text):
        raise ValueError("must be a whole number, written with the digits 0 to 9")
    return text


PLAIN_DIGITS = BeforeValidator(_plain)
Page = Annotated[int, Field(ge=1, le=100), PLAIN_DIGITS]


class ListQuery(Model):
    """Query parameters of lists that are returned page by page."""

    limit: Page = Field(default=50, description="Maximum number of items per page.")
    cursor: str = Field(default="", description="The value of `cursor` in the previous page, unchanged.")


class MetadataQuery(Model):
    """Query parameters that filter documents by their metadata."""

    document_type: str = Field(default="", description="Type of the document, such as `manual`.")
    department: str = Field(default="", description="Department to which the document belongs.")
    project_id: tuple[str, ...] = Field(
        default=(),
        max_length=100,
        description="Id of the document's project. Repeat the parameter to match any of several projects.",
    )
    language: str = Field(default="", description="Language of the document, as an ISO 639-1 code.")
    author: str = Field(default="", description="Author of the document, as extracted or corrected.")
    filename: str = Field(default="", description="Complete file name of the document.")
    tags: tuple[str, ...] = Field(
        default=(),
        max_length=20,
        description="Tag of the document. Repeat the parameter to match any of several tags.",
    )
    uploaded_from: date | None = Field(default=None, description="Earliest day of the upload, in UTC.")
    uploaded_to: date | None = Field(default=None, description="Latest day of the upload, in UTC.")
    dated_from: date | None = Field(default=None, description="Earliest date printed in the document.")
    dated_to: date | None = Field(default=None, description="Latest date printed in the document.")

    @property
    def filters(self) -> Filters:
        """The parameters that the caller set, as index filters."""
        names = ("document_type", "department", "project_id", "language", "author", "filename", "tags")
        filters: Filters = {name: value for name in names if (value := getattr(self, name))}
        for field, first, last in (
            ("upload_date", self.uploaded_from, self.uploaded_to),
            ("document_date", self.dated_from, self.dated_to),
        ):
            if first or last:
                filters[field] = DateRange(
                    start=first.isoformat() if first else None,
                    end=f"{last.isoformat()}T23:59:59.9999999Z" if last else None,
                )
        return filters


class ResumeHeaders(Model):
    """Request headers for streams that can be resumed."""

    last_event_id: str = Field(
        default="",
        alias="Last-Event-ID",
        pattern=r"^[0-9]{0,18}$",
        description="Number of the last event received. The stream continues after it.",
    )


class KeyHeaders(Model):
    """Request headers for creating a resource with safe retries."""

    idempotency_key: str = Field(
        default="",
        alias="Idempotency-Key",
        pattern=r"^[\x21-\x7e]{1,200}$",
        description=(
            "Key that makes retries safe: for 24 hours, a repeated request gets the first result. Using it "
            "for a different request results in 422."
        ),
    )


class CachedHeaders(Model):
    """Request headers for resources that the caller may have cached."""

    if_none_match: str = Field(
        default="", alias="If-None-Match", description="ETags of the versions that the caller has cached."
    )


class IfMatchHeaders(Model):
    """Request headers for changes that apply only to a certain version."""

    if_match: str = Field(
        default="",
        alias="If-Match",
        description="ETag of the version to change. If the resource has changed, the reply is 412.",
    )


# Ids in the path are compared byte by byte, so they are neither trimmed nor converted.
DocId = Annotated[
    str, Path(min_length=1, description="Document id, as returned in lists, search results and citations.")
]


class _DocIdConvertor(Convertor[str]):
    """Path convertor `{doc_id:doc_id}`, which excludes the names of other routes below /api/documents.
    Otherwise, these names would be document ids in requests with methods that their own routes don't support.
    """

    regex = r"(?!(?:events|facets|import|uploads)$)[^/]+"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("doc_id", _DocIdConvertor())

AssetName = Annotated[str, Path(min_length=1, description="Name of a file that the web page loads.")]


class ReplyHeaders(Model):
    """Response headers that the API description documents."""

    location: str = Field(alias="Location", description="URL of the created resource.")
    run_id: str = Field(alias="X-Run-Id", description="Id of the run that answers the request.")
    etag: str = Field(alias="ETag", description="Identifier of the version of the content.")
    content_range: str = Field(
        alias="Content-Range",
        pattern=r"^bytes [0-9]+-[0-9]+/[0-9]+$",
        description="Range of bytes that the response contains, and the size of the file.",
    )
    accept_ranges: str = Field(
        alias="Accept-Ranges", description="Unit of the ranges that a client may request, always `bytes`."
    )
    www_authenticate: str = Field(
        alias="WWW-Authenticate", description="Authentication scheme that the caller must use."
    )
    replayed: str = Field(
        alias="Idempotency-Replayed",
        pattern=r"^true$",
        description="Present if the response repeats the result of an earlier request with the same key.",
    )
    limit: str = Field(
        alias="RateLimit-Limit", pattern=r"^[0-9]+$", description="Number of calls allowed per minute."
    )
    remaining: str = Field(
        alias="RateLimit-Remaining",
        pattern=r"^[0-9]+$",
        description="Number of calls that the caller can still make now.",
    )
    reset: str = Field(
        alias="RateLimit-Reset",
        pattern=r"^[0-9]+$",
        description="Seconds until the full number of calls is available again.",
    )
    max_body_bytes: str = Field(
        alias="X-Max-Body-Bytes",
        pattern=r"^[0-9]+$",
        description="Maximum size of the body or file, in bytes.",
    )
    retry_after: str = Field(
        alias="Retry-After", pattern=r"^[0-9]+$", description="Seconds to wait before retrying."
    )


JSON_TEXT: dict[str, JsonValue] = {"contentMediaType": "application/json"}
EVENT_NUMBER = r"^[0-9]{1,18}$"


class RunStreamEvent(Model):
    """A server-sent event of a run. The last event is `complete` or `error`.

    A line that begins with `:` is a comment. The fields of each event: docs/events-and-errors.md.
    """

    id: str = Field(pattern=EVENT_NUMBER, description="Number of the event, counted from 1 without gaps.")
    event: str = Field(
        json_schema_extra={"enum": [name.lower() for name in get_args(EventName)]},
        description="Name of the event, in lower case.",
    )
    data: str = Field(json_schema_extra=JSON_TEXT, description="Fields of the event, as a JSON object.")


class CompletionFailure(Model):
    """The body of an error response in OpenAI's protocol."""

    error: dict[str, JsonValue] = Field(
        description="Object with the fields `message`, `type`, `param` and `code`."
    )
