"""A store in memory for the state of sub-agents that all instances share."""

import itertools

from shared.answering.control import ControlStore
from shared.answering.control_state import ControlState
from shared.platform.errors import ConflictError
from tests.fakes.table import InMemoryTable


class InMemoryControlStore(ControlStore):
    """A store with a single state. A write based on an outdated revision raises ConflictError."""

    def __init__(self) -> None:
        super().__init__(InMemoryTable())
        self.state = ControlState()
        self._revisions = itertools.count(1)

    async def read(self) -> ControlState:
        return self.state

    async def write(self, state: ControlState) -> ControlState:
        if state.revision != self.state.revision:
            raise ConflictError("The record changed.")
        self.state = state.model_copy(update={"revision": f"revision-{next(self._revisions)}"})
        return self.state
