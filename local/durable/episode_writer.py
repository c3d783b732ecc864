"""Stores an episode in one transaction: history, requested work, sub-orchestrations and events for the
parent.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import uuid4

from local.durable import instance_table
from local.durable.episode import Completion, Episode, NextExecution
from local.durable.history import EventType, HistoryEvent, dump_events, utc_text
from local.durable.instances import Instance, InstanceExists, ParentTask, RuntimeStatus
from local.durable.work import (
    ActivityRequest,
    ActivityWork,
    ChildRequest,
    TaskKey,
    TimerRequest,
    TimerWork,
)


@dataclass(frozen=True)
class Committed:
    """The effects of a committed episode: work to dispatch, timers to cancel and instances to wake."""

    activities: list[ActivityWork]
    timers: list[TimerWork]
    cancelled_timers: list[TaskKey]
    woken: list[str]


NOTHING = Committed([], [], [], [])


@dataclass(frozen=True)
class EpisodeWriter:
    """Writer of one episode of an instance, within a transaction of the caller."""

    connection: sqlite3.Connection
    instance: Instance
    now: datetime

    def write(self, positions: Sequence[int], episode: Episode) -> Committed:
        self.connection.executemany("DELETE FROM inbox WHERE position = ?", [(row,) for row in positions])
        self._append(episode.events)
        ending = episode.ending
        self._update(
            ending.status if isinstance(ending, Completion) else RuntimeStatus.RUNNING,
            output=ending.output if isinstance(ending, Completion) else None,
            custom_status=episode.custom_status,
        )
        if isinstance(ending, Completion):
            return self._end(ending)
        if isinstance(ending, NextExecution):
            return self._continue_as_new(ending)
        return self._schedule(episode)

    def _append(self, events: Sequence[HistoryEvent]) -> None:
        self.connection.execute(
            "INSERT INTO history SELECT :id, 1 + coalesce(max(episode), 0), :events "
            "FROM history WHERE instance_id = :id",
            {"id": self.instance.instance_id, "events": dump_events(events)},
        )

    def _update(self, status: RuntimeStatus, *, output: str | None, custom_status: str | None) -> None:
        self.connection.execute(
            "UPDATE instances SET runtime_status = ?, output = ?, updated_at = ?, "
            "custom_status = ? WHERE instance_id = ?",
            (status, output, utc_text(self.now), custom_status, self.instance.instance_id),
        )

    def _schedule(self, episode: Episode) -> Committed:
        committed = Committed([], [], [], [])
        for request in episode.requests:
            match request:
                case ActivityRequest():
                    committed.activities.append(self._add_activity(request))
                case TimerRequest(cancelled=False):
                    committed.timers.append(self._add_timer(request))
                case ChildRequest():
                    committed.woken.append(self._add_child(request))
        for task_id in episode.cancelled_timers:
            key = self._key(task_id)
            self.connection.execute(
                "DELETE FROM timers WHERE instance_id = ? AND task_id = ?", (key.instance_id, task_id)
            )
            committed.cancelled_timers.append(key)
        return committed

    def _add_activity(self, request: ActivityRequest) -> ActivityWork:
        key = self._key(request.task_id)
        self.connection.execute(
            "INSERT INTO activities VALUES (?, ?, ?, ?, ?)",
            (key.instance_id, key.task_id, key.execution_id, request.name, request.input),
        )
        return ActivityWork(key, request.name, request.input)

    def _add_timer(self, request: TimerRequest) -> TimerWork:
        key = self._key(request.task_id)
        self.connection.execute(
            "INSERT INTO timers VALUES (?, ?, ?, ?)",
            (key.instance_id, key.task_id, key.execution_id, utc_text(request.fire_at)),
        )
        return TimerWork(key, request.fire_at)

    def _add_child(self, request: ChildRequest) -> str:
        """Create a sub-orchestration and return the id of the instance to wake: normally the
        sub-orchestration. If its id is already in use, the parent receives a failure event and is woken
        instead.
        """
        timestamp = utc_text(self.now)
        child = Instance(
            instance_id=request.instance_id,
            execution_id=uuid4().hex,
            name=request.name,
            version=request.version,
            # The host encodes the JSON text as a JSON string again, as for the input of start_new.
            input=json.dumps(request.input),
            runtime_status=RuntimeStatus.PENDING,
            created_at=timestamp,
            updated_at=timestamp,
            parent=ParentTask(self.instance.instance_id, self.instance.execution_id, request.task_id),
        )
        try:
            instance_table.create(self.connection, child)
        except InstanceExists as error:
            refused = HistoryEvent(
                event_type=EventType.SUB_ORCHESTRATION_INSTANCE_FAILED,
                timestamp=timestamp,
                task_scheduled_id=request.task_id,
                reason=str(error),
                details=f"Instance ID '{request.instance_id}'",
            )
            instance_table.post(self.connection, self.instance.instance_id, refused)
            return self.instance.instance_id
        return child.instance_id

    def _end(self, ending: Completion) -> Committed:
        dropped = self._drop_work()
        parent = self.instance.parent
        if parent is None:
            return dropped
        waiting = self.connection.execute(
            "SELECT 1 FROM instances WHERE instance_id = ? AND execution_id = ?",
            (parent.instance_id, parent.execution_id),
        ).fetchone()
        event = _result_for_parent(parent.task_id, ending, utc_text(self.now))
        if waiting and instance_table.post(self.connection, parent.instance_id, event):
            return replace(dropped, woken=[parent.instance_id])
        return dropped

    def _continue_as_new(self, ending: NextExecution) -> Committed:
        instance_id = self.instance.instance_id
        left_over = self.connection.execute(
            "SELECT event FROM inbox WHERE instance_id = ? ORDER BY position", (instance_id,)
        ).fetchall()
        dropped = self._drop_work()
        self.connection.execute("DELETE FROM history WHERE instance_id = ?", (instance_id,))
        renewed = replace(self.instance, execution_id=uuid4().hex, input=json.dumps(ending.input))
        self.connection.execute(
            "UPDATE instances SET execution_id = ?, input = ? WHERE instance_id = ?",
            (renewed.execution_id, renewed.input, instance_id),
        )
        instance_table.put(
            self.connection, instance_id, instance_table.started_event(renewed, utc_text(self.now))
        )
        for event in ending.carried_events:
            instance_table.put(self.connection, instance_id, event)
        self.connection.executemany(
            "INSERT INTO inbox (instance_id, event) VALUES (?, ?)",
            [(instance_id, event) for (event,) in left_over],
        )
        return replace(dropped, woken=[instance_id])

    def _drop_work(self) -> Committed:
        """Delete all pending events, activities and timers of the instance. Late results are ignored."""
        timers = self.connection.execute(
            "SELECT task_id FROM timers WHERE instance_id = ?", (self.instance.instance_id,)
        ).fetchall()
        for statement in (
            "DELETE FROM inbox WHERE instance_id = ?",
            "DELETE FROM activities WHERE instance_id = ?",
            "DELETE FROM timers WHERE instance_id = ?",
        ):
            self.connection.execute(statement, (self.instance.instance_id,))
        return replace(NOTHING, cancelled_timers=[self._key(row["task_id"]) for row in timers])

    def _key(self, task_id: int) -> TaskKey:
        return TaskKey(self.instance.instance_id, self.instance.execution_id, task_id)


def _result_for_parent(task_id: int, ending: Completion, timestamp: str) -> HistoryEvent:
    """Return the event that reports a sub-orchestration's result to its parent. If it didn't complete, the
    event fails the parent's task, with the output as the reason.
    """
    if ending.status is RuntimeStatus.COMPLETED:
        return HistoryEvent(
            event_type=EventType.SUB_ORCHESTRATION_INSTANCE_COMPLETED,
            timestamp=timestamp,
            task_scheduled_id=task_id,
            result=ending.output,
        )
    return HistoryEvent(
        event_type=EventType.SUB_ORCHESTRATION_INSTANCE_FAILED,
        timestamp=timestamp,
        task_scheduled_id=task_id,
        reason=ending.output,
        details=ending.details,
    )
