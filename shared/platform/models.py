"""The base of all wire models: frozen, without undeclared fields."""

from datetime import datetime
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A value that crosses a boundary: validated once on entry, then immutable."""

    # Validators are built on first use: building all of them would add 50 ms to a cold start.
    # Errors are logged and must not quote a value, which could be document text.
    # The schema of a reply requires fields with defaults, too: they are always sent.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,
        hide_input_in_errors=True,
        json_schema_serialization_defaults_required=True,
    )

    @classmethod
    def from_stored(cls, stored: str | bytes) -> Self:
        """Parse JSON that the app stored. Fields added by a newer version are ignored."""
        return cls.model_validate_json(stored, extra="ignore")

    @classmethod
    def from_payload(cls, payload: Any) -> Self:
        """Parse a payload that crossed a durable boundary; unknown fields are ignored."""
        return cls.model_validate(payload, extra="ignore")


Stored = TypeVar("Stored", bound=Model)


class HourRecord(Model):
    """A record that is stored once: `key` is unique among records of its kind in the same hour of `at`."""

    kind: str
    key: str
    at: datetime

    @property
    def row_key(self) -> str:
        """The record's key within its hour."""
        return f"{self.kind}-{self.key}"
