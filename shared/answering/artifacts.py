"""The files of sub-agents, among those of their run: delegations and states.

A delegation is stored once, by the first attempt at its step that does. A state is overwritten by its child
alone; it is always read from the store, since another process may have written it.
"""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from shared.answering.subagent_models import Delegation, SubagentState, SubagentTask, TurnInput
from shared.platform.blobs import BlobStore, find_model, keep_model
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.names import WORK
from shared.platform.telemetry import get_logger
from shared.runs.event_log import StaleAttemptError

_DELEGATION = "-delegation.json"


@dataclass(frozen=True)
class Child:
    """A task with what its sub-agent has brought; a state that never began = nothing was stored."""

    task: SubagentTask
    state: SubagentState


def delegation_path(run_id: str, step: int) -> str:
    """Where a step's delegation lies in the work container."""
    return f"runs/{run_id}/{step:03d}{_DELEGATION}"


def state_path(run_id: str, step: int, index: int) -> str:
    """Where a child's state lies in the work container."""
    return f"runs/{run_id}/{step:03d}-child{index}.json"


async def put_delegation(blobs: BlobStore, run_id: str, delegation: Delegation) -> Delegation:
    """Keep what a step decided; gives what is kept, which may be another attempt's."""
    return await keep_model(blobs, WORK, delegation_path(run_id, delegation.step), delegation)


async def replace_delegation(blobs: BlobStore, run_id: str, delegation: Delegation) -> None:
    """Overwrite what is kept of a step: the times of its tasks."""
    path = delegation_path(run_id, delegation.step)
    await blobs.write(WORK, path, delegation.model_dump_json().encode())


async def find_delegation(blobs: BlobStore, run_id: str, step: int) -> Delegation | None:
    """What a step decided; None when it did not delegate."""
    return await find_model(blobs, WORK, delegation_path(run_id, step), Delegation)


async def delegations_of(blobs: BlobStore, run_id: str) -> tuple[Delegation, ...]:
    """All that a run delegated, in the order of its steps."""
    names = [
        blob.name
        async for blob in blobs.list_blobs(WORK, f"runs/{run_id}/")
        if blob.name.endswith(_DELEGATION)
    ]
    steps = [int(name.rpartition("/")[2].removesuffix(_DELEGATION)) for name in names]
    found = await run_together(*(find_delegation(blobs, run_id, step) for step in sorted(steps)))
    return tuple(delegation for delegation in found if delegation is not None)


async def child_ids(blobs: BlobStore, run_id: str) -> tuple[str, ...]:
    """The orchestrations of all sub-agents that a run has set to work, also of one that is being erased."""
    delegations = await delegations_of(blobs, run_id)
    at_work = [task.child_id for delegation in delegations for task in delegation.tasks]
    return tuple(dict.fromkeys((*at_work, *await _remembered(blobs, run_id))))


async def remember_ids(blobs: BlobStore, run_id: str, ids: Sequence[str]) -> None:
    """Keep the names of a run's sub-agents, and nothing else, until their histories can be removed."""
    if ids:
        await blobs.write(WORK, _ids_path(run_id), json.dumps(ids).encode())


async def _remembered(blobs: BlobStore, run_id: str) -> tuple[str, ...]:
    try:
        return tuple(json.loads(await blobs.read(WORK, _ids_path(run_id))))
    except NotFoundError:
        return ()


def _ids_path(run_id: str) -> str:
    return f"runs/{run_id}/children.json"


async def find_state(blobs: BlobStore, run_id: str, step: int, index: int) -> SubagentState | None:
    """What a child has brought so far; None when it has stored nothing, or nothing that can be read."""
    try:
        stored = await blobs.read(WORK, state_path(run_id, step, index))
    except NotFoundError:
        return None
    return state_from(stored, run_id, step, index)


def state_from(stored: bytes, run_id: str, step: int, index: int) -> SubagentState | None:
    """A child's state as it was stored; None when it cannot be read."""
    try:
        return SubagentState.from_stored(stored)
    except ValidationError:
        get_logger().error("sub_agent.state_unreadable", run_id=run_id, step=step, child=index)
        return None


async def children_of(blobs: BlobStore, delegations: Sequence[Delegation]) -> tuple[Child, ...]:
    """The tasks of some delegations, each with its state."""
    tasks = [task for delegation in delegations for task in delegation.tasks]
    states = await run_together(*(find_state(blobs, task.run_id, task.step, task.index) for task in tasks))
    return tuple(
        Child(task, state or SubagentState(child_id=task.child_id, profile=task.profile))
        for task, state in zip(tasks, states, strict=True)
    )


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
