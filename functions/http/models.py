"""Query parameters, headers and bodies of the API that belong to no package in `shared/`."""

import re
from datetime import date
from typing import Annotated, Any, Literal, get_args

from fastapi import Path
from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, JsonValue, RootModel

from shared.access.models import AUDIT_CURSOR, AuditAction
from shared.platform.models import Model
from shared.platform.search import DateRange, Filters
from shared.runs.log_lines import EventName

_DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)

# The longest blob name, 1,024 characters of three bytes, gives a cursor of fewer than 4,300 characters;
# the Functions host accepts request lines of up to 8,192 bytes (Kestrel, MaxRequestLineSize).
_MAX_CURSOR_CHARS = 6000


def _plain(text: Any) -> Any:
    """Reject number formats that only Python accepts: `1_0`, ` 1`, digits of other scripts."""
    if isinstance(text, str) and not _DIGITS.fullmatch(text):
        raise ValueError("takes a whole number in plain digits")
    return text


Page = Annotated[int, Field(ge=1, le=100), BeforeValidator(_plain)]
Hours = Annotated[int, Field(ge=1, le=168), BeforeValidator(_plain)]  # a week, because each hour is one query


class AudiencesQuery(Model):
    """Query parameters that select people and groups of the directory."""

    q: str = Field(default="", max_length=100, description="Prefix of a word in the name.")
    principal: tuple[str, ...] = Field(
        default=(), max_length=50, description="Id of a principal; may be repeated. Ignored with `q`."
    )


class PeopleQuery(Model):
    """Query parameters of the administrators' list of people."""

    q: str = Field(
        default="", max_length=100, description="Prefix of a word in the name; without it, recent people."
    )


class ListQuery(Model):
    """Query parameters of paged lists."""

    limit: Page = Field(default=50, description="Maximum number of items.")
    cursor: str = Field(default="", description="`cursor` of the previous page, unchanged.")


class AuditQuery(Model):
    """Query parameters that select entries of the audit trail."""

    since: AwareDatetime | None = Field(
        default=None, description="Start of the period; by default a day before `until`."
    )
    until: AwareDatetime | None = Field(default=None, description="End of the period; by default now.")
    user_id: str = Field(default="", max_length=256, description="Only entries of this user.")
    doc_id: str = Field(default="", max_length=128, description="Only entries about this document.")
    action: AuditAction | None = Field(default=None, description="Only this action.")
    limit: Page = Field(default=50, description="Maximum number of items.")
    cursor: str = Field(
        default="", pattern=AUDIT_CURSOR, description="`cursor` of the previous page, unchanged."
    )


class ThreadsQuery(ListQuery):
    """Query parameters of the list of threads."""

    q: str = Field(
        default="", max_length=200, description="Words in titles and questions; all matches are on one page."
    )


class MessagesQuery(Model):
    """Query parameters of a thread's messages."""

    limit: Page = Field(default=20, description="Maximum number of items.")
    cursor: str = Field(
        default="",
        pattern=r"^([1-9][0-9]{0,7})?$",
        description="`cursor` of the previous page, unchanged.",
    )


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
        found: Filters = {name: value for name in names if (value := getattr(self, name))}
        for field, first, last in (
            ("upload_date", self.uploaded_from, self.uploaded_to),
            ("document_date", self.dated_from, self.dated_to),
        ):
            if first or last:
                found[field] = DateRange(
                    start=first.isoformat() if first else None,
                    end=f"{last.isoformat()}T23:59:59.9999999Z" if last else None,
                )
        return found


class FacetsQuery(MetadataQuery):
    """Query parameters that select the documents to count."""

    q: str = Field(default="", max_length=500, description="Only documents that match one of these words.")


class DocumentsQuery(MetadataQuery):
    """Query parameters of the list of documents."""

    q: str = Field(
        default="",
        max_length=500,
        description="Words in names, tags, people or summaries; best matches first.",
    )
    status: Literal["", "working", "failed", "ready"] = Field(
        default="", description="Only documents in progress, failed or complete."
    )
    sort: Literal["", "title", "filename", "document_type", "upload_date", "document_date", "page_count"] = (
        Field(default="", description="Order of complete documents; not with `q` or `status`.")
    )
    limit: Page = Field(default=100, description="Maximum number of items.")
    cursor: str = Field(
        default="", max_length=_MAX_CURSOR_CHARS, description="`cursor` of the previous page, unchanged."
    )


class SearchQuery(MetadataQuery):
    """Query parameters of GET /api/search."""

    q: str = Field(min_length=1, max_length=2000, description="Search terms or a question.")
    top_k: Annotated[int, Field(ge=1, le=50), BeforeValidator(_plain)] = Field(
        default=10, description="Maximum number of results."
    )


class MetricsQuery(Model):
    """Query parameters of the sub-agents' metrics."""

    hours: Hours = Field(default=24, description="Length of the period until now, in hours.")


class QualityQuery(Model):
    """Query parameters of the quality of answers in production."""

    hours: Annotated[int, Field(ge=1, le=720), BeforeValidator(_plain)] = (
        Field(  # 30 days, the retention of runs
            default=24, description="Length of the period until now, in hours."
        )
    )
    project_id: str = Field(default="", max_length=128, description="Only this project.")


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


class ChatHeaders(KeyHeaders):
    """Headers of a question."""

    prefer: str = Field(default="", alias="Prefer", description="`respond-async` answers 202 at once.")
    last_event_id: str = Field(
        default="",
        alias="Last-Event-ID",
        pattern=r"^[0-9]{0,18}$",
        description="For a retry with the same key: the stream continues after this event.",
    )


class SummaryHeaders(KeyHeaders):
    """Headers of a request for a summary."""

    prefer: str = Field(
        default="", alias="Prefer", description="`wait=60` waits up to 60 seconds for the result."
    )


class FileHeaders(Model):
    """Headers of requests for part of a file."""

    range: str = Field(default="", alias="Range", description="One byte range, such as `bytes=0-1023`.")
    if_range: str = Field(
        default="",
        alias="If-Range",
        description="ETag of the version that the caller has partially downloaded.",
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
RunId = Annotated[str, Path(min_length=1, description="Run id, from the header `X-Run-Id` of POST /chat.")]
ThreadId = Annotated[str, Path(min_length=1, description="Thread id, from POST /threads or a run.")]
SummaryId = Annotated[str, Path(min_length=1, description="Summary id, from POST /summaries.")]
DocId = Annotated[str, Path(min_length=1, description="Document id, from lists, results and citations.")]
PictureName = Annotated[str, Path(min_length=1, description="File name of a picture, from an answer.")]
PageName = Annotated[
    str,
    Path(
        description="Page number, counted from 1.",
        json_schema_extra={"pattern": "^[1-9][0-9]{0,6}$"},  # not validated here: other names get a 404
    ),
]
FileName = Annotated[str, Path(min_length=1, description="File name, from GET /workspace.")]
AssetName = Annotated[str, Path(min_length=1, description="Name of a file of the web page.")]
UserId = Annotated[str, Path(min_length=1, description="User id, from GET /me: the object id in Entra ID.")]


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


_JSON: dict[str, JsonValue] = {"contentMediaType": "application/json"}
_NUMBER = r"^[0-9]{1,18}$"


class RunStreamEvent(Model):
    """One event of a run's stream. `complete` or `error` is the last.

    A line that begins with `:` is a comment. The fields of each event: docs/events-and-errors.md.
    """

    id: str = Field(pattern=_NUMBER, description="Number of the event, counted from 1 without gaps.")
    event: str = Field(
        json_schema_extra={"enum": [name.lower() for name in get_args(EventName)]},
        description="Event type.",
    )
    data: str = Field(json_schema_extra=_JSON, description="A JSON object.")


class DocumentStreamEvent(Model):
    """One change of a document. A line that begins with `:` is a comment."""

    id: str = Field(pattern=_NUMBER, description="Time in microseconds since 1970; ids increase.")
    event: Literal["document", "removed"] = Field(description="Event type.")
    data: str = Field(
        json_schema_extra=_JSON, description="For `document` a DocumentView; for `removed` only its `doc_id`."
    )


class SiteView(Model):
    """Settings that a page needs before its first request.

    Attributes:
        max_request_bytes: maximum size of an upload through the app; larger files need `POST
            /documents/uploads`.
        suffixes: suffixes of supported files, in lower case with their dot.
        web_import: whether web pages may be imported.
        stand_in: whether answers come from the local stand-in instead of a language model.
    """

    max_question_chars: int = Field(description="Maximum length of a question.")
    max_document_bytes: int = Field(description="Maximum size of a file.")
    max_request_bytes: int
    suffixes: tuple[str, ...]
    web_import: bool = False
    stand_in: bool = False


class HealthView(Model):
    """Sign that the process responds."""

    status: Literal["ok"] = Field(default="ok", description="Always `ok`.")


class ReadinessView(Model):
    """Availability of the stores."""

    status: Literal["ok", "unavailable"] = Field(
        description="`unavailable` while a service does not respond."
    )
    failed: dict[str, str] = Field(
        description="Unavailable services (search, storage, tables), each with an error code."
    )


class CompletionEvent(Model):
    """A piece of a completion. A line that begins with `:` is a comment."""

    data: str = Field(description="A `chat.completion.chunk` or an error, as JSON; `[DONE]` is the last.")


class _Choice(Model):
    index: int = Field(description="Always 0.")
    message: dict[str, JsonValue] = Field(description="Text and `annotations` of type `url_citation`.")
    finish_reason: str = Field(description="`stop`, or `length` if the answer was truncated.")


class Completion(Model):
    """An answer in OpenAI's protocol."""

    id: str = Field(description="Run id with the prefix `chatcmpl-`.")
    object: Literal["chat.completion"] = Field(description="Object type in OpenAI's protocol.")
    created: int = Field(description="Time of the question, in seconds since 1970.")
    model: str = Field(description="The requested model.")
    choices: tuple[_Choice, ...] = Field(description="The answer, as a single choice.")
    usage: dict[str, int] = Field(description="Tokens of the whole run: `prompt_tokens` and so on.")
    groundwork: dict[str, JsonValue] = Field(
        description="Run, thread, and citations with their verification."
    )


class CompletionFailure(Model):
    """An error in OpenAI's protocol."""

    error: dict[str, JsonValue] = Field(description="`message`, `type` and `code`.")


class ModelList(Model):
    """The models and agents available through OpenAI's protocol."""

    object: Literal["list"] = Field(description="Object type in OpenAI's protocol.")
    data: tuple[dict[str, JsonValue], ...] = Field(description="Models and agents.")


class RpcMessage(Model):
    """A message of the Model Context Protocol (JSON-RPC 2.0)."""

    jsonrpc: Literal["2.0"] = Field(description="Always `2.0`.")
    method: str = Field(description="Method, such as `tools/call`.")
    id: str | int | None = Field(default=None, description="Id of a request; notifications have none.")
    params: dict[str, JsonValue] = Field(default_factory=dict, description="Parameters of the method.")


class RpcResult(Model):
    """The result of a method."""

    jsonrpc: Literal["2.0"] = Field(description="Always `2.0`.")
    id: str | int = Field(description="Id of the request.")
    result: dict[str, JsonValue] = Field(description="Result of the method.")


class RpcFailure(Model):
    """The error for a message that can't be processed."""

    jsonrpc: Literal["2.0"] = Field(description="Always `2.0`.")
    id: str | int | None = Field(description="Id of the request; null if it could not be parsed.")
    error: dict[str, JsonValue] = Field(description="`code`, `message` and optionally `data`.")


class RpcAnswer(RootModel[RpcResult | RpcFailure]):
    """The response to a message."""


class RpcEvent(Model):
    """A message of a stream. A line that begins with `:` is a comment."""

    event: Literal["message"] = Field(description="Always `message`.")
    data: str = Field(json_schema_extra=_JSON, description="A progress notification or the response.")


class ChatMessage(Model):
    """A message of a conversation in OpenAI's protocol. Other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    role: str = Field(max_length=20, description="`user` for the user's messages.")
    content: str | tuple[dict[str, JsonValue], ...] | None = Field(
        default=None, description="Text, or a list of parts; only parts of type `text` are used."
    )

    @property
    def text(self) -> str:
        """The text of the message."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return "\n".join(str(part.get("text", "")) for part in self.content if part.get("type") == "text")


class StreamOptions(Model):
    """Options of a stream. Other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool = Field(default=False, description="End with a chunk that contains the token usage.")


class CompletionBody(Model):
    """A conversation in OpenAI's protocol. Other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    model: str = Field(
        max_length=200, description="`groundwork`, `groundwork-deep` for deep research, or an agent's name."
    )
    messages: tuple[ChatMessage, ...] = Field(
        min_length=1, max_length=1000, description="The conversation; its last message is the question."
    )
    stream: bool = Field(default=False, description="Stream the answer.")
    stream_options: StreamOptions | None = Field(
        default=None, description="Options of a stream; otherwise ignored."
    )

    @property
    def questions(self) -> tuple[str, ...]:
        """The texts of the user's messages, oldest first."""
        return tuple(message.text for message in self.messages if message.role == "user")


class SearchBody(Model):
    """A query with filters; `top_k` is clamped to 1-50."""

    query: str = Field(min_length=1, max_length=8000, description="Search terms or a question.")
    top_k: int = Field(default=10, description="Maximum number of results.")
    filters: Filters = Field(
        default_factory=dict,
        description="Maps a field to a value, a list of values, or {start, end} for dates.",
    )


class _Found(Model):
    block_id: str = Field(description="Block id; it changes only with the content.")
    doc_id: str = Field(description="Document id.")
    filename: str = Field(description="Name of the file.")
    page_number: int | None = Field(
        description="Page, slide or sheet, counted from 1; null if the document has none."
    )
    score: float = Field(description="Score from 0 to 1, comparable between queries.")


class PassageView(_Found):
    """A passage that matches the query."""

    block_type: Literal["text"] = Field(description="Type of the result.")
    content: str = Field(description="Text, with tables as Markdown.")


class PictureView(_Found):
    """A picture that matches the query, with a signed URL that is valid for at least an hour."""

    block_type: Literal["image"] = Field(description="Type of the result.")
    image_url: str | None = Field(repr=False, description="Signed URL of the picture.")
    image_caption: str | None = Field(description="Description of the picture.")


class SearchResults(Model):
    """Response of POST /api/search, best first. An empty list is a success."""

    results: tuple[Annotated[PassageView | PictureView, Field(discriminator="block_type")], ...] = Field(
        description="Results, best first."
    )
    result_count: int = Field(description="Number of results.")
