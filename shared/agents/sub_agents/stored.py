"""What parent and children keep of sub-agents in working memory: erased with their run.

A delegation is stored once, by the first attempt at its step that does. A state is overwritten by its child
alone; it is always read from the store, since another process may have written it.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from shared.errors import NotFoundError
from shared.models.names import WORK
from shared.models.subagents import Delegation, SubagentState, SubagentTask
from shared.ports import BlobStore
from shared.telemetry import get_logger

_DELEGATION = "-delegation.json"


@dataclass(frozen=True)
class Child:
    """A task with what its sub-agent has brought; None = nothing was stored."""

    task: SubagentTask
    state: SubagentState | None


def delegation_path(run_id: str, step: int) -> str:
    """Where a step's delegation lies in the work container."""
    return f"runs/{run_id}/{step:03d}{_DELEGATION}"


def state_path(run_id: str, step: int, index: int) -> str:
    """Where a child's state lies in the work container."""
    return f"runs/{run_id}/{step:03d}-child{index}.json"


async def put_delegation(blobs: BlobStore, run_id: str, delegation: Delegation) -> Delegation:
    """Keep what a step decided; gives what is kept, which may be another attempt's."""
    path = delegation_path(run_id, delegation.step)
    if await blobs.create(WORK, path, delegation.model_dump_json().encode()):
        return delegation
    return Delegation.from_kept(await blobs.read(WORK, path))


async def find_delegation(blobs: BlobStore, run_id: str, step: int) -> Delegation | None:
    """What a step decided; None when it did not delegate."""
    try:
        return Delegation.from_kept(await blobs.read(WORK, delegation_path(run_id, step)))
    except NotFoundError:
        return None


async def delegations_of(blobs: BlobStore, run_id: str) -> tuple[Delegation, ...]:
    """All that a run delegated, in the order of its steps."""
    names = [
        blob.name
        async for blob in blobs.list_blobs(WORK, f"runs/{run_id}/")
        if blob.name.endswith(_DELEGATION)
    ]
    steps = [int(name.rpartition("/")[2].removesuffix(_DELEGATION)) for name in names]
    found = await asyncio.gather(*(find_delegation(blobs, run_id, step) for step in sorted(steps)))
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
        return SubagentState.from_kept(stored)
    except ValidationError:
        get_logger().error("sub_agent.state_unreadable", run_id=run_id, step=step, child=index)
        return None


async def children_of(blobs: BlobStore, delegations: Sequence[Delegation]) -> tuple[Child, ...]:
    """The tasks of some delegations, each with its state."""
    tasks = [task for delegation in delegations for task in delegation.tasks]
    states = await asyncio.gather(*(find_state(blobs, task.run_id, task.step, task.index) for task in tasks))
    return tuple(Child(task, state) for task, state in zip(tasks, states, strict=True))
