"""The base of every wire model: frozen, and closed to fields that nobody declared."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A value that crosses a border: validated once on entry, never changed after."""

    # Validators are built on first use: building all of them costs a cold start 50 ms that it rarely needs.
    # An error quotes no value: it could be a document's text, and errors are logged.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, hide_input_in_errors=True)

    @classmethod
    def from_kept(cls, kept: str | bytes) -> Self:
        """From JSON that some version of the app wrote, perhaps a newer one: what that one added is left out.

        So the version before still works with what is kept, after a way back or while both run.
        """
        return cls.model_validate_json(kept, extra="ignore")

    @classmethod
    def from_payload(cls, payload: Any) -> Self:
        """From what came across a durable boundary: `from_kept` of a JSON object."""
        return cls.model_validate(payload, extra="ignore")
