"""Base classes of the app's data models."""

from datetime import datetime
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Base class of immutable data models. Unknown fields are rejected."""

    # Validators are built on first use: building all of them would add 50 ms to a cold start. Validation
    # errors are logged, so they must not quote values, which may be document text. In response schemas,
    # fields with defaults are required too, because they are always sent.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,
        hide_input_in_errors=True,
        json_schema_serialization_defaults_required=True,
    )

    @classmethod
    def from_stored(cls, stored: str | bytes) -> Self:
        """Parse JSON from storage. Unknown fields are ignored, because a newer version may have written
        them.
        """
        return cls.model_validate_json(stored, extra="ignore")

    @classmethod
    def from_payload(cls, payload: Any) -> Self:
        """Parse the payload of an activity or orchestration. Unknown fields are ignored."""
        return cls.model_validate(payload, extra="ignore")


Stored = TypeVar("Stored", bound=Model)


class HourRecord(Model):
    """Base class of write-once records. `key` is unique among records of one kind in the same hour."""

    kind: str
    key: str
    at: datetime

    @property
    def row_key(self) -> str:
        """The row key: unique within the record's hour, which is the partition."""
        return f"{self.kind}-{self.key}"
