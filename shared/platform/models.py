"""The base of every wire model: frozen, and closed to fields that nobody declared."""

from datetime import datetime
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A value that crosses a border: validated once on entry, never changed after."""

    # Validators are built on first use: building all of them costs a cold start 50 ms that it rarely needs.
    # An error quotes no value: it could be a document's text, and errors are logged.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, hide_input_in_errors=True)

    @classmethod
    def from_stored(cls, stored: str | bytes) -> Self:
        """From JSON that the app stored. Unknown fields are ignored: a newer version may have added them."""
        return cls.model_validate_json(stored, extra="ignore")

    @classmethod
    def from_payload(cls, payload: Any) -> Self:
        """From a JSON object that crossed a durable boundary; unknown fields are ignored."""
        return cls.model_validate(payload, extra="ignore")


Stored = TypeVar("Stored", bound=Model)


class HourRecord(Model):
    """What is recorded once: `key` is unique among records of the same kind and the same hour of `at`."""

    kind: str
    key: str
    at: datetime

    @property
    def row_key(self) -> str:
        """Its key within its hour."""
        return f"{self.kind}-{self.key}"
