"""Ports of sub-agents: what instances share. Part of `shared.ports`, from where they are imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

# For annotations alone: the start of the app need not build every model.
if TYPE_CHECKING:
    from shared.models.subagent_control import ControlState


class ControlStore(Protocol):
    """The one row that all instances share about sub-agents at work."""

    async def read(self) -> ControlState:
        """The state with its revision; an empty one without revision when there is none yet."""

    async def write(self, state: ControlState) -> ControlState:
        """The state as stored. ConflictError when it changed since `state.revision` was read."""
