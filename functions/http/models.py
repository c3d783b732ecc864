"""Query parameters, headers and events that several routes share. All others are beside their routes."""

import re
from datetime import date
from typing import Annotated, Any, get_args

from fastapi import Path
from pydantic import BeforeValidator, Field, JsonValue

from shared.platform.models import Model
from shared.platform.search import DateRange, Filters
from shared.runs.log_lines import EventName

_DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)


def _plain(text: Any) -> Any:
    """Reject number formats that only Python accepts: `1_0`, ` 1`, digits of other scripts."""
    if isinstance(text, str) and not _DIGITS.fullmatch(text):
        raise ValueError("takes a whole number in plain digits")
    return text


PLAIN_DIGITS = BeforeValidator(_plain)
Page = Annotated[int, Field(ge=1, le=100), PLAIN_DIGITS]


class ListQuery(Model):
    """Query parameters of paged lists."""

    limit: Page = Field(default=50, description="Maximum number of items.")
    cursor: str = Field(default="", description="`cursor` of the previous page, unchanged.")


class MetadataQuery(Model):
    """Query parameters that filter documents by metadata."""

    document_type: str = Field(default="", description="Such as `manual`.")
    department: str = Field(default="", description="Department of the document.")
    project_id: tuple[str, ...] = Field(
        default=(),
        max_length=100,
        description="Project of the document; repeat it to match any of several.",
    )
    language: str = Field(default="", description="ISO 639-1 code.")
    author: str = Field(default="", description="Author as extracted or corrected.")
    filename: str = Field(default="", description="Complete file name.")
    tags: tuple[str, ...] = Field(
        default=(), max_length=20, description="Tag of the document; repeat it to match any of several."
    )
    uploaded_from: date | None = Field(default=None, description="First upload day, UTC.")
    uploaded_to: date | None = Field(default=None, description="Last upload day, UTC.")
    dated_from: date | None = Field(default=None, description="Earliest date printed in the document.")
    dated_to: date | None = Field(default=None, description="Latest date printed in the document.")

    @property
    def filters(self) -> Filters:
        """The given parameters as index filters."""
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
    """Headers of resumable streams."""

    last_event_id: str = Field(
        default="",
        alias="Last-Event-ID",
        pattern=r"^[0-9]{0,18}$",
        description="Number of the last event received. The stream continues after it.",
    )


class KeyHeaders(Model):
    """Headers of requests that create a resource and can be retried."""

    idempotency_key: str = Field(
        default="",
        alias="Idempotency-Key",
        pattern=r"^[\x21-\x7e]{1,200}$",
        description="Retries within 24 hours get the first result; a different request gets 422.",
    )


class CachedHeaders(Model):
    """Headers of requests for a resource that the caller may have cached."""

    if_none_match: str = Field(
        default="", alias="If-None-Match", description="ETags of the caller's cached versions."
    )


class IfMatchHeaders(Model):
    """Headers of conditional changes."""

    if_match: str = Field(default="", alias="If-Match", description="Expected ETag of the resource.")


# Path parameters. Ids are compared byte by byte, so they are neither trimmed nor converted.
DocId = Annotated[str, Path(min_length=1, description="Document id, from lists, results and citations.")]
AssetName = Annotated[str, Path(min_length=1, description="Name of a file of the web page.")]


class ReplyHeaders(Model):
    """Headers of responses."""

    location: str = Field(alias="Location", description="URL of the created resource.")
    run_id: str = Field(alias="X-Run-Id", description="Id of the run.")
    etag: str = Field(alias="ETag", description="Version of the content.")
    content_range: str = Field(
        alias="Content-Range",
        pattern=r"^bytes [0-9]+-[0-9]+/[0-9]+$",
        description="Byte range of the response.",
    )
    accept_ranges: str = Field(alias="Accept-Ranges", description="`bytes`.")
    www_authenticate: str = Field(alias="WWW-Authenticate", description="Authentication scheme to use.")
    replayed: str = Field(
        alias="Idempotency-Replayed",
        pattern=r"^true$",
        description="The response repeats an earlier result.",
    )
    limit: str = Field(alias="RateLimit-Limit", pattern=r"^[0-9]+$", description="Calls per minute.")
    remaining: str = Field(
        alias="RateLimit-Remaining", pattern=r"^[0-9]+$", description="Calls that may be made now."
    )
    reset: str = Field(
        alias="RateLimit-Reset",
        pattern=r"^[0-9]+$",
        description="Seconds until the full allowance is restored.",
    )
    max_body_bytes: str = Field(
        alias="X-Max-Body-Bytes", pattern=r"^[0-9]+$", description="Maximum size of the body or file."
    )
    retry_after: str = Field(alias="Retry-After", pattern=r"^[0-9]+$", description="Seconds to wait.")


JSON_TEXT: dict[str, JsonValue] = {"contentMediaType": "application/json"}
EVENT_NUMBER = r"^[0-9]{1,18}$"


class RunStreamEvent(Model):
    """One event of a run's stream. `complete` or `error` is the last.

    A line that begins with `:` is a comment. The fields of each event: docs/events-and-errors.md.
    """

    id: str = Field(pattern=EVENT_NUMBER, description="Number of the event, counted from 1 without gaps.")
    event: str = Field(
        json_schema_extra={"enum": [name.lower() for name in get_args(EventName)]},
        description="Event type.",
    )
    data: str = Field(json_schema_extra=JSON_TEXT, description="A JSON object.")


class CompletionFailure(Model):
    """An error in OpenAI's protocol."""

    error: dict[str, JsonValue] = Field(description="`message`, `type` and `code`.")
