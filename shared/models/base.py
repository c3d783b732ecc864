"""The base of every wire model: frozen, and closed to fields that nobody declared."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A value that crosses a border: validated once on entry, never changed after."""

    # Validators are built on first use: building all of them costs a cold start 50 ms that it rarely needs.
    # An error quotes no value: it could be a document's text, and errors are logged.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, hide_input_in_errors=True)
