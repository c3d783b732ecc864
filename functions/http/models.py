"""Parameters, headers and bodies of the API that belong to no capability."""

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

# The longest name that the storage takes, 1,024 characters of three bytes, makes a cursor of less than 4,300;
# the Functions host takes a request line of 8,192 bytes (Kestrel, MaxRequestLineSize).
_MAX_CURSOR_CHARS = 6000


def _plain(text: Any) -> Any:
    """Reject number formats that only Python accepts: `1_0`, ` 1`, digits of other scripts."""
    if isinstance(text, str) and not _DIGITS.fullmatch(text):
        raise ValueError("takes a whole number in plain digits")
    return text


Page = Annotated[int, Field(ge=1, le=100), BeforeValidator(_plain)]
Hours = Annotated[int, Field(ge=1, le=168), BeforeValidator(_plain)]  # a week: an hour is one query


class AudiencesQuery(Model):
    """Parameters that select people and groups of the directory."""

    q: str = Field(default="", max_length=100, description="The beginning of a word of their name.")
    principal: tuple[str, ...] = Field(
        default=(), max_length=50, description="An id; several times for several. Ignored with `q`."
    )


class PeopleQuery(Model):
    """Which people administrators see."""

    q: str = Field(
        default="", max_length=100, description="The beginning of a word of their name; else recent ones."
    )


class ListQuery(Model):
    """Parameters of lists that are read one page at a time."""

    limit: Page = Field(default=50, description="How many at most.")
    cursor: str = Field(default="", description="The `cursor` of the previous page, unchanged.")


class AuditQuery(Model):
    """Parameters that select entries of the audit trail."""

    since: AwareDatetime | None = Field(default=None, description="Start; by default a day before `until`.")
    until: AwareDatetime | None = Field(default=None, description="End; by default now.")
    user_id: str = Field(default="", max_length=256, description="Of this person.")
    doc_id: str = Field(default="", max_length=128, description="About this document.")
    action: AuditAction | None = Field(default=None, description="Of this kind.")
    limit: Page = Field(default=50, description="How many at most.")
    cursor: str = Field(
        default="", pattern=AUDIT_CURSOR, description="The `cursor` of the previous page, unchanged."
    )


class ThreadsQuery(ListQuery):
    """Parameters of the list of threads."""

    q: str = Field(default="", max_length=200, description="Words of titles and questions, in one page.")


class MessagesQuery(Model):
    """Parameters of a thread's messages."""

    limit: Page = Field(default=20, description="How many at most.")
    cursor: str = Field(
        default="",
        pattern=r"^([1-9][0-9]{0,7})?$",
        description="The `cursor` of the previous page, unchanged.",
    )


class MetadataQuery(Model):
    """Metadata that a document must have."""

    document_type: str = Field(default="", description="Such as `manual`.")
    department: str = Field(default="", description="Department that the document belongs to.")
    project_id: tuple[str, ...] = Field(
        default=(),
        max_length=100,
        description="Project that it belongs to; several times for documents of one of several.",
    )
    language: str = Field(default="", description="ISO 639-1 code.")
    author: str = Field(default="", description="Author as extracted or corrected.")
    filename: str = Field(default="", description="Its whole file name.")
    tags: tuple[str, ...] = Field(
        default=(), max_length=20, description="A tag; several times for documents that have one of several."
    )
    uploaded_from: date | None = Field(default=None, description="First day of its upload, UTC.")
    uploaded_to: date | None = Field(default=None, description="Last day of its upload, UTC.")
    dated_from: date | None = Field(default=None, description="First date that may be printed in it.")
    dated_to: date | None = Field(default=None, description="Last date that may be printed in it.")

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
    """Parameters that select the documents to be counted."""

    q: str = Field(default="", max_length=500, description="Only documents that match one of these words.")


class DocumentsQuery(MetadataQuery):
    """Parameters of the list of documents."""

    q: str = Field(
        default="", max_length=500, description="Words of names, tags, people or summaries; the best first."
    )
    status: Literal["", "working", "failed", "ready"] = Field(
        default="", description="Only documents in progress, failed or complete."
    )
    sort: Literal["", "title", "filename", "document_type", "upload_date", "document_date", "page_count"] = (
        Field(default="", description="Order of complete documents; without `q` and `status`.")
    )
    limit: Page = Field(default=100, description="How many at most.")
    cursor: str = Field(
        default="", max_length=_MAX_CURSOR_CHARS, description="The `cursor` of the previous page, unchanged."
    )


class SearchQuery(MetadataQuery):
    """Parameters of a search by GET."""

    q: str = Field(min_length=1, max_length=2000, description="Search terms or a question.")
    top_k: Annotated[int, Field(ge=1, le=50), BeforeValidator(_plain)] = Field(
        default=10, description="Maximum number of results."
    )


class MetricsQuery(Model):
    """Parameters of the metrics of sub-agents."""

    hours: Hours = Field(default=24, description="How many hours back.")


class QualityQuery(Model):
    """Parameters of the quality of answers in use."""

    hours: Annotated[int, Field(ge=1, le=720), BeforeValidator(_plain)] = Field(  # 30 days, as runs are kept
        default=24, description="How many hours back."
    )
    project_id: str = Field(default="", max_length=128, description="Only this project.")


class ResumeHeaders(Model):
    """Headers of resumable streams."""

    last_event_id: str = Field(
        default="",
        alias="Last-Event-ID",
        pattern=r"^[0-9]{0,18}$",
        description="Number of the last event received; what follows it is sent.",
    )


class KeyHeaders(Model):
    """Headers of requests that create something and can be repeated."""

    idempotency_key: str = Field(
        default="",
        alias="Idempotency-Key",
        pattern=r"^[\x21-\x7e]{1,200}$",
        description="A repeat within 24 hours gets the first result; another request, a 422.",
    )


class ChatHeaders(KeyHeaders):
    """Headers of a question."""

    prefer: str = Field(default="", alias="Prefer", description="`respond-async` answers 202 at once.")
    last_event_id: str = Field(
        default="",
        alias="Last-Event-ID",
        pattern=r"^[0-9]{0,18}$",
        description="If the question was sent before with this key: only events after this one.",
    )


class SummaryHeaders(KeyHeaders):
    """Headers of a request for a summary."""

    prefer: str = Field(
        default="", alias="Prefer", description="`wait=60` waits up to 60 seconds for the result."
    )


class FileHeaders(Model):
    """Headers of a request for a part of a file."""

    range: str = Field(default="", alias="Range", description="One span, such as `bytes=0-1023`.")
    if_range: str = Field(
        default="", alias="If-Range", description="ETag of the version whose other bytes the caller has."
    )


class CachedHeaders(Model):
    """Headers of a request for something that the caller may have cached."""

    if_none_match: str = Field(default="", alias="If-None-Match", description="ETags that the caller has.")


class IfMatchHeaders(Model):
    """Headers of a change that applies only to the version that the caller has seen."""

    if_match: str = Field(default="", alias="If-Match", description="ETag that the resource must still have.")


# Names in paths. Bytes of an id are compared as they are, so nothing is trimmed or converted.
RunId = Annotated[str, Path(min_length=1, description="As POST /chat returns it in `X-Run-Id`.")]
ThreadId = Annotated[str, Path(min_length=1, description="As POST /threads or a run returns it.")]
SummaryId = Annotated[str, Path(min_length=1, description="As POST /summaries returns it.")]
DocId = Annotated[str, Path(min_length=1, description="As lists, results and citations show it.")]
PictureName = Annotated[
    str, Path(min_length=1, description="File name of a picture, as answers refer to it.")
]
PageName = Annotated[
    str,
    Path(
        description="Number of a page, counted from 1.",
        json_schema_extra={"pattern": "^[1-9][0-9]{0,6}$"},  # not checked here: another name is a 404
    ),
]
FileName = Annotated[str, Path(min_length=1, description="Name of a file, as GET /workspace shows it.")]
AssetName = Annotated[str, Path(min_length=1, description="A file of the page.")]
UserId = Annotated[str, Path(min_length=1, description="As GET /me shows it: the object id in Entra ID.")]


class ReplyHeaders(Model):
    """Headers of answers."""

    location: str = Field(alias="Location", description="The address of what was created.")
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
        alias="RateLimit-Reset", pattern=r"^[0-9]+$", description="Seconds until all are available again."
    )
    max_body_bytes: str = Field(
        alias="X-Max-Body-Bytes", pattern=r"^[0-9]+$", description="How large the body or file may be."
    )
    retry_after: str = Field(alias="Retry-After", pattern=r"^[0-9]+$", description="Seconds to wait.")


_JSON: dict[str, JsonValue] = {"contentMediaType": "application/json"}
_NUMBER = r"^[0-9]{1,18}$"


class RunStreamEvent(Model):
    """One event of a run's stream. `complete` or `error` is the last.

    A line that begins with `:` is a comment. What each event carries: docs/events-and-errors.md.
    """

    id: str = Field(pattern=_NUMBER, description="Counted from 1 without gaps.")
    event: str = Field(
        json_schema_extra={"enum": [name.lower() for name in get_args(EventName)]},
        description="Which kind of event it is.",
    )
    data: str = Field(json_schema_extra=_JSON, description="A JSON object.")


class DocumentStreamEvent(Model):
    """One change of a document. A line that begins with `:` is a comment."""

    id: str = Field(pattern=_NUMBER, description="A moment in microseconds since 1970; ids rise.")
    event: Literal["document", "removed"] = Field(description="Which kind of event it is.")
    data: str = Field(
        json_schema_extra=_JSON, description="Of `document` a DocumentView; of `removed` its `doc_id` alone."
    )


class SiteView(Model):
    """What a page has to know before it sends anything.

    Attributes:
        max_request_bytes: a larger file is sent to an address of `POST /documents/uploads`.
        suffixes: of files that are read, in lower case with their dot.
        web_import: whether pages of the web may be imported.
        stand_in: whether answers come from the local stand-in, which is no language model.
    """

    max_question_chars: int = Field(description="How long a question may be.")
    max_document_bytes: int = Field(description="How large a file may be.")
    max_request_bytes: int
    suffixes: tuple[str, ...]
    web_import: bool = False
    stand_in: bool = False


class HealthView(Model):
    """The process answers."""

    status: Literal["ok"] = Field(default="ok", description="Always `ok`.")


class ReadinessView(Model):
    """Whether every store is in reach."""

    status: Literal["ok", "unavailable"] = Field(description="`unavailable` while a service does not answer.")
    failed: dict[str, str] = Field(description="Which is not (search, storage, tables), with an error code.")


class CompletionEvent(Model):
    """A piece of a completion. A line that begins with `:` is a comment."""

    data: str = Field(description="A `chat.completion.chunk` or an error, as JSON; `[DONE]` is the last.")


class _Choice(Model):
    index: int = Field(description="Always 0.")
    message: dict[str, JsonValue] = Field(description="Text and `annotations` of type `url_citation`.")
    finish_reason: str = Field(description="Always `stop`, or `length` if the answer was cut.")


class Completion(Model):
    """An answer in OpenAI's protocol."""

    id: str = Field(description="The run's id, after `chatcmpl-`.")
    object: Literal["chat.completion"] = Field(description="What this is, in OpenAI's words.")
    created: int = Field(description="When it was asked, in seconds since 1970.")
    model: str = Field(description="The model that was asked.")
    choices: tuple[_Choice, ...] = Field(description="The answer; there is one.")
    usage: dict[str, int] = Field(description="Tokens of all the work: `prompt_tokens` and so on.")
    groundwork: dict[str, JsonValue] = Field(description="Run, thread, and the citations with their proof.")


class CompletionFailure(Model):
    """An error in OpenAI's protocol."""

    error: dict[str, JsonValue] = Field(description="`message`, `type` and `code`.")


class ModelList(Model):
    """What can be asked, as models of OpenAI's protocol."""

    object: Literal["list"] = Field(description="What this is, in OpenAI's words.")
    data: tuple[dict[str, JsonValue], ...] = Field(description="The models.")


class RpcMessage(Model):
    """A message of the Model Context Protocol (JSON-RPC 2.0)."""

    jsonrpc: Literal["2.0"] = Field(description="Always `2.0`.")
    method: str = Field(description="Such as `tools/call`.")
    id: str | int | None = Field(default=None, description="Of a request; a notification has none.")
    params: dict[str, JsonValue] = Field(default_factory=dict, description="As the method takes them.")


class RpcResult(Model):
    """What a method answers."""

    jsonrpc: Literal["2.0"] = Field(description="Always `2.0`.")
    id: str | int = Field(description="Of the request.")
    result: dict[str, JsonValue] = Field(description="What the method returns.")


class RpcFailure(Model):
    """A message that cannot be served."""

    jsonrpc: Literal["2.0"] = Field(description="Always `2.0`.")
    id: str | int | None = Field(description="Of the request; null if it could not be read.")
    error: dict[str, JsonValue] = Field(description="`code`, `message` and perhaps `data`.")


class RpcAnswer(RootModel[RpcResult | RpcFailure]):
    """The answer to a message."""


class RpcEvent(Model):
    """A message of a stream. A line that begins with `:` is a comment."""

    event: Literal["message"] = Field(description="Always `message`.")
    data: str = Field(json_schema_extra=_JSON, description="A progress notification, or the answer.")


class ChatMessage(Model):
    """A message of a conversation in OpenAI's protocol. Fields that are not read are left alone."""

    model_config = ConfigDict(extra="ignore")

    role: str = Field(max_length=20, description="`user` for what the person said.")
    content: str | tuple[dict[str, JsonValue], ...] | None = Field(
        default=None, description="Text, or parts, of which those of type `text` are read."
    )

    @property
    def text(self) -> str:
        """The text of the message."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return "\n".join(str(part.get("text", "")) for part in self.content if part.get("type") == "text")


class StreamOptions(Model):
    """What a stream tells in addition. Fields that are not named here have no effect."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool = Field(default=False, description="End with a chunk that has the tokens used.")


class CompletionBody(Model):
    """A conversation in OpenAI's protocol. Fields that are not named here have no effect."""

    model_config = ConfigDict(extra="ignore")

    model: str = Field(
        max_length=200, description="`groundwork`, `groundwork-deep` for deeper work, or an agent."
    )
    messages: tuple[ChatMessage, ...] = Field(
        min_length=1, max_length=1000, description="The conversation; its last message is the question."
    )
    stream: bool = Field(default=False, description="Send the answer as it is written.")
    stream_options: StreamOptions | None = Field(default=None, description="Of a stream alone.")

    @property
    def questions(self) -> tuple[str, ...]:
        """The texts of the user's messages, oldest first."""
        return tuple(message.text for message in self.messages if message.role == "user")


class SearchBody(Model):
    """A query and what narrows it; `top_k` is clamped to 1-50."""

    query: str = Field(min_length=1, max_length=8000, description="In words, or as a question.")
    top_k: int = Field(default=10, description="Maximum number of results.")
    filters: Filters = Field(
        default_factory=dict, description="Field to value, list of values, or {start, end} for dates."
    )


class _Found(Model):
    block_id: str = Field(description="The block; its id changes only with its content.")
    doc_id: str = Field(description="The document.")
    filename: str = Field(description="Name of the file.")
    page_number: int | None = Field(
        description="Page, slide or sheet, counted from 1; null if the document has none."
    )
    score: float = Field(description="0-1, comparable between queries.")


class PassageView(_Found):
    """A passage that was found."""

    block_type: Literal["text"] = Field(description="Whether it is text or a picture.")
    content: str = Field(description="The text, tables as Markdown.")


class PictureView(_Found):
    """A picture that was found, with a signed address that is good for an hour at least."""

    block_type: Literal["image"] = Field(description="Whether it is text or a picture.")
    image_url: str | None = Field(repr=False, description="A signed address of the picture.")
    image_caption: str | None = Field(description="Description of the picture.")


class SearchResults(Model):
    """Answer of POST /api/search, best first. No result is a success."""

    results: tuple[Annotated[PassageView | PictureView, Field(discriminator="block_type")], ...] = Field(
        description="What was found, best first."
    )
    result_count: int = Field(description="How many results.")
