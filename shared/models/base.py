"""The base of every wire model: frozen, and closed to fields that nobody declared."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A value that crosses a border: validated once on entry, never changed after."""

    # Validators are built on first use: building all of them costs a cold start 50 ms that it rarely needs.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
