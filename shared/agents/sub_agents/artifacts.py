"""What a sub-agent stores: its state, for its parent, and its transcript, for its next turn.

Both are overwritten by this sub-agent alone, and erased with the run.
"""

from shared.agents.sub_agents.stored import find_state, state_path
from shared.errors import NotFoundError
from shared.models.names import WORK
from shared.models.subagent_work import ChildTranscript
from shared.models.subagents import SubagentState, TurnInput
from shared.ports import BlobStore


class ChildStore:
    """The blobs of one sub-agent."""

    def __init__(self, blobs: BlobStore, turn: TurnInput) -> None:
        self._blobs = blobs
        self._turn = turn
        self._path = state_path(turn.run_id, turn.step, turn.index)

    async def state(self) -> SubagentState | None:
        """What it has brought so far; None before its first turn."""
        return await find_state(self._blobs, self._turn.run_id, self._turn.step, self._turn.index)

    async def put_state(self, state: SubagentState) -> None:
        """Overwrite it."""
        await self._blobs.write(WORK, self._path, state.model_dump_json().encode())

    async def transcript(self) -> ChildTranscript | None:
        """What was said so far; None before the first passages were looked for."""
        try:
            stored = await self._blobs.read(WORK, self._transcript_path)
        except NotFoundError:
            return None
        return ChildTranscript.model_validate_json(stored)

    async def put_transcript(self, transcript: ChildTranscript) -> None:
        """Overwrite it."""
        await self._blobs.write(WORK, self._transcript_path, transcript.model_dump_json().encode())

    @property
    def _transcript_path(self) -> str:
        return f"{self._path.removesuffix('.json')}-transcript.json"
