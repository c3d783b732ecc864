"""Reconstructs the sub-agents of a run from its journal: their tasks, states and findings.

A step that delegates stores its `Delegation` with its completion. The journal lines of a child carry the step
and the child's index. The child's last state counts, updated by later findings, whether or not its turn
completed.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from shared.answering.subagent_models import (
    Delegation,
    ReportedFindings,
    SubagentPlace,
    SubagentState,
    SubagentTask,
    TakeSubagentTurn,
    TurnResult,
)
from shared.answering.summary_models import DocumentPlaces
from shared.platform.blobs import BlobStore
from shared.platform.errors import NotFoundError
from shared.platform.names import WORK
from shared.platform.telemetry import get_logger
from shared.runs.events import DoneLine, ValueLine, events_of
from shared.runs.journal import Journal
from shared.runs.run_log import RunLog

DELEGATION = "delegation"
STATE = "state"
FINDINGS = "findings"
DOCUMENTS = "documents"


@dataclass(frozen=True)
class Child:
    """A sub-agent's task and its latest stored state, or the initial state if none is stored."""

    task: SubagentTask
    state: SubagentState


async def find_delegation(journal: Journal, step: int) -> Delegation | None:
    """Return the delegation that a step stored, or None if it stored none."""
    return await journal.find(step, Delegation, DELEGATION)


async def delegation_with(journal: Journal, place: SubagentPlace) -> tuple[Delegation, SubagentTask]:
    """Return the delegation that a sub-agent belongs to, and the sub-agent's task.

    Raises:
        NotFoundError: the run has no such task.
    """
    delegation = await find_delegation(journal, place.step)
    if delegation is not None and place.index < len(delegation.tasks):
        return delegation, delegation.tasks[place.index]
    raise NotFoundError("The run has no task for this sub-agent.")


async def delegations_of(journal: Journal) -> tuple[Delegation, ...]:
    """Return all delegations of a run in the order of their steps."""
    steps = sorted({line.of for line in journal.value_lines(DELEGATION)})
    delegations = [await find_delegation(journal, step) for step in steps]
    return tuple(delegation for delegation in delegations if delegation is not None)


async def children_of(journal: Journal, delegations: Sequence[Delegation]) -> tuple[Child, ...]:
    """Return all tasks of the delegations, each with the state of its sub-agent."""
    return tuple(
        [
            Child(
                task,
                await find_state(journal, task.step, task.index)
                or SubagentState(child_id=task.child_id, profile=task.profile),
            )
            for delegation in delegations
            for task in delegation.tasks
        ]
    )


async def find_state(journal: Journal, step: int, index: int) -> SubagentState | None:
    """Return the last stored state of a sub-agent with its latest findings. Return None if none is stored or
    it can't be read.
    """
    lines = [
        line
        for line in journal.lines_of_child(step, index)
        if isinstance(line, ValueLine) and line.part in (STATE, FINDINGS)
    ]
    place = max((place for place, line in enumerate(lines) if line.part == STATE), default=None)
    if place is None:
        return None
    try:
        state = await journal.value(lines[place], SubagentState)
        for line in lines[place + 1 :][-1:]:
            reported = await journal.value(line, ReportedFindings)
            state = state.model_copy(update=dict(reported))
    except (ValidationError, NotFoundError):
        get_logger().error("sub_agent.state_unreadable", run_id=journal.run_id, step=step, child=index)
        return None
    return state


def turn_results(journal: Journal, step: int, index: int) -> list[tuple[DoneLine, TurnResult]]:
    """Return the journal lines and results of a sub-agent's turns in order, including failed attempts."""
    lines = journal.lines_of_child(step, index)
    return [(line, TurnResult.from_payload(line.result)) for line in lines if isinstance(line, DoneLine)]


def completed_turn(journal: Journal, place: SubagentPlace, turn: TakeSubagentTurn) -> TurnResult | None:
    """Return the stored result of a sub-agent's turn, or None if the turn must still be executed.

    The result of a failed attempt counts for that attempt and earlier ones; any other result counts for all.
    """
    for line, result in turn_results(journal, place.step, place.index):
        is_known = result.status != "failed" or (line.tries or 0) >= turn.attempt
        if line.turn == turn.turn and is_known:
            return result
    return None


async def child_ids(run_log: RunLog, blobs: BlobStore, run_id: str) -> tuple[str, ...]:
    """Return the orchestration instance ids of all children that a run has started. Works even while the run
    is being deleted.
    """
    try:
        events = events_of(await run_log.read(run_id))
    except NotFoundError:
        events = []
    journal = Journal(run_log, blobs, run_id)
    journal.events = events
    started = [task.child_id for delegation in await delegations_of(journal) for task in delegation.tasks]
    for line in journal.value_lines(DOCUMENTS):
        started += [place.child_id for place in (await journal.value(line, DocumentPlaces)).children]
    return tuple(dict.fromkeys((*started, *await _stored_ids(blobs, run_id))))


async def store_child_ids(blobs: BlobStore, run_id: str, ids: Sequence[str]) -> None:
    """Store the instance ids of a run's children, so that their histories can still be purged after the
    journal is deleted.
    """
    if ids:
        await blobs.write(WORK, _ids_path(run_id), json.dumps(ids).encode())


async def _stored_ids(blobs: BlobStore, run_id: str) -> tuple[str, ...]:
    try:
        return tuple(json.loads(await blobs.read(WORK, _ids_path(run_id))))
    except NotFoundError:
        return ()


def _ids_path(run_id: str) -> str:
    return f"runs/{run_id}/children.json"
