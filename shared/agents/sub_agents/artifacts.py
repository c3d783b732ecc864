"""What a sub-agent stores: its state, for its parent, and its transcript, for its next turn.

Both are overwritten by one attempt at one of its turns, and erased with the run. Of two attempts at once, as
when a host comes back that was thought dead, the first to store counts; the other one may write no more.
"""

import uuid

from shared.agents.journal import StaleAttemptError
from shared.agents.sub_agents.stored import state_from, state_path
from shared.errors import ConflictError, NotFoundError
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
        self._attempt_id = uuid.uuid4().hex
        self._etag: str | None = None

    async def state(self) -> SubagentState | None:
        """What it has brought so far; None before its first turn. What is written later follows on this."""
        try:
            stored, self._etag = await self._blobs.read_version(WORK, self._path)
        except NotFoundError:
            self._etag = None
            return None
        return state_from(stored, self._turn.run_id, self._turn.step, self._turn.index)

    async def put_state(self, state: SubagentState) -> None:
        """Overwrite it, before anything else is written.

        Raises:
            StaleAttemptError: another attempt has written since it was read.
        """
        ours = state.model_copy(update={"attempt_id": self._attempt_id})
        content = ours.model_dump_json().encode()
        try:
            self._etag = await self._blobs.write_version(WORK, self._path, content, etag=self._etag)
        except ConflictError:
            known = await self.state()
            if known is None or known.attempt_id != self._attempt_id:
                raise StaleAttemptError("Another attempt at this turn was quicker.") from None
            # It was our own: the answer to an earlier write, or to a try of this one, was lost.
            self._etag = await self._blobs.write_version(WORK, self._path, content, etag=self._etag)

    async def transcript(self) -> ChildTranscript | None:
        """What was said so far; None before the first passages were looked for."""
        try:
            stored = await self._blobs.read(WORK, self._transcript_path)
        except NotFoundError:
            return None
        return ChildTranscript.from_kept(stored)

    async def put_transcript(self, transcript: ChildTranscript) -> None:
        """Overwrite it."""
        await self._blobs.write(WORK, self._transcript_path, transcript.model_dump_json().encode())

    @property
    def _transcript_path(self) -> str:
        return f"{self._path.removesuffix('.json')}-transcript.json"
