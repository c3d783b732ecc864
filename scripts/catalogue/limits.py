"""The limits of the API. `make docs` writes them into docs/api.md, with the defaults of the settings."""

from collections.abc import Sequence
from typing import NamedTuple

from functions.http.bodies import JSON_S, MAX_BODY_BYTES
from shared.platform.settings import AnsweringSettings, IngestionSettings, LimitSettings, setting_fields


class Limit(NamedTuple):
    """What is limited, to how much, and the status and error code above it."""

    subject: str
    value: str
    refusal: str


def _setting(name: str) -> str:
    return f"`{name}` ({setting_fields()[name].default:,})"


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1_000_000:g} MB"


_OPEN_STREAMS = LimitSettings.model_fields["max_open_streams"].default
_UPLOAD_BYTES = IngestionSettings.model_fields["max_upload_bytes"].default
_DOCUMENT_BYTES = IngestionSettings.model_fields["max_document_bytes"].default
_QUESTION_CHARS = AnsweringSettings.model_fields["max_question_chars"].default

LIMITS: Sequence[Limit] = (
    Limit(
        "calls that cost, per person and minute: `POST` of chat, search, summaries (per document), threads, "
        "documents, uploads, reingest, views of documents, and each MCP tool or resource that is used; "
        "repeats as well",
        _setting("RATE_LIMIT_PER_MINUTE"),
        "429 `TooManyRequestsError`",
    ),
    Limit(
        "questions and summaries of one person at work",
        f"{_setting('MAX_CONCURRENT_RUNS')}; waiting ones don't count until they are answered",
        "429 `TooManyRunsError`",
    ),
    Limit(
        "files, bytes, parser seconds, blocks, captions, tokens of questions and summaries, drawn pages, per "
        "person and day (UTC)",
        "[`MAX_DAILY_…`](settings.md)",
        "429 `DailyLimitError`, for calls that need it",
    ),
    Limit(
        "connections that one person keeps open in one process: streams, and questions that wait for their "
        "answer",
        f"{_OPEN_STREAMS}",
        "429 `TooManyRequestsError`",
    ),
    Limit(
        "views and page pictures of one person at work in one process",
        "2 of each; six more wait",
        "429 `TooManyRequestsError`",
    ),
    Limit("a JSON body", f"{MAX_BODY_BYTES // 1024} KiB, within {JSON_S:.0f} s", "413, 408"),
    Limit(
        "a file",
        f"{_megabytes(_UPLOAD_BYTES)} through the app, "
        f"`MAX_DOCUMENT_BYTES` ({_megabytes(_DOCUMENT_BYTES)}) otherwise",
        "413",
    ),
    Limit("a question", f"{_QUESTION_CHARS:,} characters", "413"),
)
