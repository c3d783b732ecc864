"""The state of sub-agents that instances share, in memory."""

import itertools

from shared.answering.control import ControlState, ControlStore
from shared.platform.errors import ConflictError
from tests.fakes.table import InMemoryTable


class InMemoryControlStore(ControlStore):
    """A single state; a write over a newer version is refused."""

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
