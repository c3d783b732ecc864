"""The shared state of sub-agents in memory, with revisions that change."""

import itertools

from shared.errors import ConflictError
from shared.models.subagent_control import ControlState
from shared.ports import ControlStore


class InMemoryControlStore(ControlStore):
    """One state; whoever writes what changed meanwhile is refused."""

    def __init__(self) -> None:
        self.state = ControlState()
        self._revisions = itertools.count(1)

    async def read(self) -> ControlState:
        return self.state

    async def write(self, state: ControlState) -> ControlState:
        if state.revision != self.state.revision:
            raise ConflictError("The record changed.")
        self.state = state.model_copy(update={"revision": f"revision-{next(self._revisions)}"})
        return self.state
