"""The base of every wire model: frozen, and closed to fields that nobody declared."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A value that crosses a border: validated once on entry, never changed after."""

    model_config = ConfigDict(frozen=True, extra="forbid")
