"""Descriptions of the API's limits. `make docs` writes them to docs/api.md, with the default values of the
settings.
"""

from collections.abc import Sequence
from typing import NamedTuple

from functions.http.bodies import JSON_S, MAX_BODY_BYTES
from shared.platform.settings import setting_fields
from shared.platform.settings_groups.access import LimitSettings
from shared.platform.settings_groups.answers import AnsweringSettings
from shared.platform.settings_groups.documents import IngestionSettings


class Limit(NamedTuple):
    """A limit of the API, with its value and the status and error code of requests that exceed it."""

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
        "metered calls per user and minute: `POST` of chat, search, summaries (per document), threads, "
        "documents, uploads, reingest, views of documents, and each use of an MCP tool or resource; "
        "retries count too",
        _setting("RATE_LIMIT_PER_MINUTE"),
        "429 `TooManyRequestsError`",
    ),
    Limit(
        "questions and summaries of one user in progress",
        f"{_setting('MAX_CONCURRENT_RUNS')}; runs that wait for the user don't count",
        "429 `TooManyRunsError`",
    ),
    Limit(
        "files, bytes, parser seconds, blocks, captions, tokens of questions and summaries, rendered pages, "
        "per user and day (UTC)",
        "[`MAX_DAILY_…`](settings.md)",
        "429 `DailyLimitError`, for calls that need the resource",
    ),
    Limit(
        "open connections of one user to one process: streams, and questions and summaries that wait for "
        "their result",
        f"{_OPEN_STREAMS}",
        "429 `TooManyRequestsError`",
    ),
    Limit(
        "views and page images being rendered for one user in one process",
        "2 of each; 6 more wait",
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
