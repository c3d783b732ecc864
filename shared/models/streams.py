"""Server-sent events, for the description of the API: a stream is described by each of its events."""

from typing import Literal, get_args

from pydantic import Field, JsonValue

from shared.models.base import Model
from shared.models.events import EventName

_JSON: dict[str, JsonValue] = {"contentMediaType": "application/json"}
_NUMBER = r"^[0-9]{1,18}$"


class RunStreamEvent(Model):
    """One event of a run's stream. `complete` or `error` is the last.

    A line that begins with `:` is a comment. What each event carries: docs/events.md.
    """

    id: str = Field(pattern=_NUMBER, description="Counted from 1 without gaps.")
    event: str = Field(json_schema_extra={"enum": [name.lower() for name in get_args(EventName)]})
    data: str = Field(json_schema_extra=_JSON, description="A JSON object.")


class DocumentStreamEvent(Model):
    """One change of a document. A line that begins with `:` is a comment."""

    id: str = Field(pattern=_NUMBER, description="A moment in microseconds since 1970; ids rise.")
    event: Literal["document", "removed"]
    data: str = Field(
        json_schema_extra=_JSON, description="Of `document` a DocumentView; of `removed` its `doc_id` alone."
    )
