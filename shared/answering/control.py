"""Limits the number of concurrent sub-agents and pauses them after failures. All instances share one stored
row, updated by compare-and-swap.

A writer that loses the race for the row reads it again after a jittered wait, up to a limit of attempts and
time. Functions whose result an answer needs (`read_control`, `grant`) raise if the store fails, and the
policy then starts no sub-agent. Functions that only record (`begin`, `settle`, `release`) never raise: an
unreleased slot expires.
"""

# Deferred annotations speed up the start of the app, because pydantic then builds models on first use.
from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from pydantic import ValidationError

from shared.answering.control_state import (
    ControlState,
    ControlView,
    view,
    with_begun_lease,
    with_leases,
    with_outcomes,
    without_leases,
)
from shared.answering.subagent_models import SubagentEnd
from shared.platform.errors import (
    CallTimeoutError,
    ConflictError,
    DependencyError,
    GroundworkError,
)
from shared.platform.names import SUBAGENT_CONTROL_TABLE
from shared.platform.settings import Settings
from shared.platform.tables import Entity, Table, joined_text, revision_of, split_text
from shared.platform.telemetry import get_logger

Result = TypeVar("Result")

_KEY = "subagents"
# Maximum number of attempts at a compare-and-swap. With 40 simultaneous writers, each needs 6 on average,
# which takes 1.5 s on two busy cores.
_MAX_TRIES = 12
_FIRST_WAIT_S = 0.01
_MAX_WAIT_S = 0.2
# Time limit for acquiring slots, during which the answer is delayed. After it, no sub-agent is started.
_ANSWER_LIMIT_S = 2.0
# Time limit of updates that nobody waits for. A slot that could not be released stays occupied until it
# expires.
_RECORD_LIMIT_S = 10.0


class ControlStore:
    """Access to the row that all instances share. The row's etag serves as the revision of the state."""

    def __init__(self, table: Table) -> None:
        self._table = table
        # serialises changes within this process, so that only other processes can cause conflicts
        self.turn = asyncio.Lock()

    async def read(self) -> ControlState:
        """Read the state and its revision. If the row doesn't exist, return an empty state without a
        revision.

        Raises:
            DependencyError: the row is damaged or was written by a later version.
        """
        entity = await self._table.get(_KEY, _KEY)
        if entity is None:
            return ControlState()
        try:
            state = ControlState.from_stored(joined_text(entity))
        except ValidationError:
            # An unreadable row doesn't mean that no sub-agent is running, so an empty state would be wrong.
            raise DependencyError(
                "The record of running sub-agents cannot be read.",
                f"Delete the row in table {SUBAGENT_CONTROL_TABLE}; the next sub-agent creates a new one.",
            ) from None
        return state.model_copy(update={"revision": revision_of(entity)})

    async def write(self, state: ControlState) -> ControlState:
        """Write the state if its revision is still current, and return it with its new revision.

        Raises:
            ConflictError: the row was changed or deleted after `state.revision` was read.
        """
        text = state.model_dump_json(exclude={"revision"})
        entity: Entity = {"PartitionKey": _KEY, "RowKey": _KEY, **split_text(text)}
        revision = await self._table.swap(entity, state.revision)
        return state.model_copy(update={"revision": revision})


async def read_control(settings: Settings, store: ControlStore, without: str | None = None) -> ControlView:
    """Return how many sub-agents are running, how many are waiting, and how many more may start.

    Args:
        without: prefix of the ids of sub-agents to exclude; None excludes none.

    Raises:
        GroundworkError: the store failed or was slow.
    """
    state = await _within(_ANSWER_LIMIT_S, store.read())
    if without is not None:
        ids = [lease.child_id for lease in state.leases if lease.child_id.startswith(without)]
        state = without_leases(state, ids)
    return view(state, settings.subagents, datetime.now(UTC))


async def grant(
    settings: Settings, store: ControlStore, deadlines: Mapping[str, datetime], now: datetime
) -> bool:
    """Lease a slot for every sub-agent and return True, or lease none and return False. Idempotent.

    Return False if the limit is reached or the circuit is open. At most `ControlView.free` slots can be
    granted.

    Raises:
        GroundworkError: the store failed, or too many instances wrote at the same time.
    """
    change = _compare_and_swap(store, lambda state: with_leases(state, deadlines, settings.subagents, now))
    return await _within(_ANSWER_LIMIT_S, change)


async def begin(store: ControlStore, child_id: str) -> None:
    """Record that the sub-agent has started. Errors are logged, never raised."""
    await _update_quietly(store, lambda state: with_begun_lease(state, child_id), "begin")


async def settle(settings: Settings, store: ControlStore, ends: Sequence[SubagentEnd]) -> None:
    """Release the slots of ended sub-agents and record each outcome once for the circuit breaker. Errors are
    logged, never raised.
    """
    now = datetime.now(UTC)
    await _update_quietly(store, lambda state: with_outcomes(state, ends, settings.subagents, now), "settle")


async def release(store: ControlStore, child_ids: Sequence[str]) -> None:
    """Release the slots of cancelled sub-agents. Errors are logged, never raised."""
    if child_ids:
        await _update_quietly(store, lambda state: without_leases(state, child_ids), "release")


async def _update_quietly(
    store: ControlStore, change: Callable[[ControlState], ControlState], action: str
) -> None:
    try:
        await _within(_RECORD_LIMIT_S, _compare_and_swap(store, change))
    except GroundworkError as failed:
        get_logger().warning("sub_agent.control_failed", action=action, error_type=failed.code)


async def _compare_and_swap(
    store: ControlStore, change: Callable[[ControlState], ControlState | None]
) -> bool:
    """Apply `change` by compare-and-swap, retrying on conflicts. Return False if `change` returns None."""
    async with store.turn:
        for tries in range(_MAX_TRIES):
            state = await store.read()
            changed = change(state)
            if changed is None:
                return False
            if changed == state:
                return True
            try:
                await store.write(changed)
            except ConflictError:
                await asyncio.sleep(random.uniform(0, min(_MAX_WAIT_S, _FIRST_WAIT_S * 2.0**tries)))
            else:
                return True
    raise DependencyError(
        "Too many sub-agents are starting and ending at the same time.", "Try again in a moment."
    )


async def _within(limit_s: float, work: Awaitable[Result]) -> Result:
    try:
        async with asyncio.timeout(limit_s):
            return await work
    except TimeoutError:
        raise CallTimeoutError("The state of sub-agents could not be read or written in time.") from None
