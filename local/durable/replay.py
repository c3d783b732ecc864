"""Replays an orchestration from the host's point of view: matches the orchestrator's actions with the
history. Pure.

The SDK replays the generator and returns its actions; DurableTask replays the actions in order against the
same history and assigns sequence numbers. Both must assign the same numbers. Source:
OutOfProcOrchestrationShim.cs (schemas V2 and V3), TaskOrchestrationContext.cs and -Executor.cs.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import singledispatchmethod

from local.durable.actions import (
    Action,
    CallActivity,
    CallActivityWithRetry,
    CallSubOrchestrator,
    ContinueAsNew,
    CreateTimer,
    Unsupported,
    WaitForExternalEvent,
    WhenAll,
    WhenAny,
)
from local.durable.functions import unknown_function
from local.durable.history import COMPLETIONS, FAILURES, SCHEDULING, EventType, HistoryEvent, parse_utc
from local.durable.work import (
    REQUEST_OF_EVENT,
    ActivityRequest,
    ChildRequest,
    ReplayFailed,
    ReplayOutcome,
    ReplayScope,
    Request,
    TimerRequest,
    describe,
)


class HostTask:
    """A task of an orchestration: an activity, a sub-orchestration, a timer or an awaited event. It finishes
    when the history contains the event that reports its result.
    """

    def __init__(self) -> None:
        self.done = False
        self.failed = False
        self._callback: Callable[[bool], None] | None = None

    def then(self, callback: Callable[[bool], None]) -> None:
        """Call `callback` with the task's `failed` flag when the task finishes, or immediately if it has
        finished. A later callback replaces an earlier one.
        """
        if self.done:
            callback(self.failed)
        else:
            self._callback = callback

    def finish(self, *, failed: bool = False) -> None:
        """Finish the task and notify its parent. Later calls are ignored."""
        if self.done:
            return
        self.done, self.failed = True, failed
        if self._callback is not None:
            self._callback(failed)


class CompoundTask(HostTask):
    """A WhenAll or WhenAny: a task that finishes when `needed` of its children have finished.

    Failed children count too: in the real host, a WhenAll waits for all children even after an error.
    """

    def __init__(self, children: Sequence[HostTask], *, needed: int) -> None:
        super().__init__()
        self._missing = min(needed, len(children))
        if self._missing == 0:
            self.finish()
        for child in children:
            child.then(self._child_finished)

    def _child_finished(self, _failed: bool) -> None:
        self._missing -= 1
        if self._missing <= 0:
            self.finish()


class RetriedTask(HostTask):
    """An activity with retries: attempts separated by timers, plus one timer of zero length after the last
    failure.

    That last timer began as a bug of DurableTask that was kept for compatibility; the SDK waits for it.
    Source: DurableTask.Core/RetryInterceptor.cs.

    Args:
        max_attempts: at least 1.
        start_attempt: schedules one attempt and returns its task.
        start_timer: schedules a timer; its argument is True for the last one, which is due immediately.
    """

    def __init__(
        self,
        max_attempts: int,
        start_attempt: Callable[[], HostTask],
        start_timer: Callable[[bool], HostTask],
    ) -> None:
        super().__init__()
        self._attempts_left = max_attempts
        self._start_attempt = start_attempt
        self._start_timer = start_timer
        self._attempt()

    def _attempt(self) -> None:
        self._attempts_left -= 1
        self._start_attempt().then(self._attempt_ended)

    def _attempt_ended(self, failed: bool) -> None:
        if not failed:
            self.finish()
            return
        self._start_timer(self._attempts_left == 0).then(self._timer_fired)

    def _timer_fired(self, _failed: bool) -> None:
        if self._attempts_left == 0:
            self.finish(failed=True)
        else:
            self._attempt()


_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


def replay(history: Iterable[HistoryEvent], actions: Sequence[Action], scope: ReplayScope) -> ReplayOutcome:
    """Match all actions with the history and return the resulting state.

    Raises:
        ReplayFailed: the history contains work that the actions don't request at that point
            (non-determinism), an unknown function, an unusable child id, or an unsupported action.
    """
    run = _Replay(actions, scope)
    for event in history:
        run.apply(event)
    return ReplayOutcome(
        requests=[run.unconfirmed[task_id] for task_id in sorted(run.unconfirmed)],
        cancelled_timers=frozenset(run.cancelled_timers),
        has_open_tasks=bool(run.open_tasks),
        all_awaited=run.all_awaited,
        continue_as_new=run.continue_as_new,
        carried_events=run.carried_events,
        unreached=run.unreached,
    )


@dataclass
class _Replay:
    actions: Sequence[Action]
    scope: ReplayScope
    unconfirmed: dict[int, Request] = field(default_factory=dict)
    open_tasks: dict[int, HostTask] = field(default_factory=dict)
    cancelled_timers: set[int] = field(default_factory=set)
    continue_as_new: str | None = None
    carried_events: list[HistoryEvent] = field(default_factory=list)
    _waiting: defaultdict[str, list[HostTask]] = field(default_factory=lambda: defaultdict(list))
    _buffered: defaultdict[str, deque[HistoryEvent]] = field(default_factory=lambda: defaultdict(deque))
    _now: datetime = _BEFORE_ALL
    _started: bool = False
    _next_id: int = 0
    _reached: int = 0
    _awaited: HostTask | None = None

    @property
    def all_awaited(self) -> bool:
        return self._started and self._awaited is None and self.unreached == 0

    @property
    def unreached(self) -> int:
        return len(self.actions) - self._reached

    def apply(self, event: HistoryEvent) -> None:
        kind = event.event_type
        if kind is EventType.ORCHESTRATOR_STARTED:
            self._now = parse_utc(event.timestamp)
        elif kind is EventType.EXECUTION_STARTED:
            self._started = True
        elif kind in SCHEDULING:
            self._confirm(event)
        elif kind in COMPLETIONS:
            # As in the real host, late results of cancelled or finished tasks are ignored.
            if (task := self.open_tasks.pop(event.ended_id, None)) is not None:
                task.finish(failed=kind in FAILURES)
        elif kind is EventType.EVENT_RAISED:
            self._raise_event(event)
        if self._started:
            self._advance()

    def _advance(self) -> None:
        """Start the orchestrator's actions in order, and stop at the first one that must wait for an
        event.
        """
        while self._awaited is None or self._awaited.done:
            self._awaited = None
            if self.unreached == 0:
                return
            action = self.actions[self._reached]
            self._reached += 1
            self._awaited = self._begin(action)

    @singledispatchmethod
    def _begin(self, action: Action) -> HostTask:
        """Start an action and return its task. Nested actions get their sequence numbers depth first, as in
        the real host.
        """
        raise TypeError(f"unsupported action of the protocol: {action}")

    @_begin.register
    def _(self, action: WhenAll) -> HostTask:
        children = [self._begin(child) for child in action.compound_actions]
        return CompoundTask(children, needed=len(children))

    @_begin.register
    def _(self, action: WhenAny) -> HostTask:
        return CompoundTask([self._begin(child) for child in action.compound_actions], needed=1)

    @_begin.register
    def _(self, action: CallActivityWithRetry) -> HostTask:
        options = action.retry_options

        def start_timer(last: bool) -> HostTask:
            pause = timedelta(milliseconds=0 if last else options.first_retry_interval_in_milliseconds)
            return self._create_timer(self._now + pause)

        return RetriedTask(options.max_number_of_attempts, lambda: self._call_activity(action), start_timer)

    @_begin.register
    def _(self, action: CreateTimer) -> HostTask:
        return self._create_timer(parse_utc(action.fire_at), cancelled=action.is_canceled)

    @_begin.register
    def _(self, action: WaitForExternalEvent) -> HostTask:
        name = action.external_event_name
        if self._buffered[name]:
            self._buffered[name].popleft()
            return _finished_task()
        # Waiters form a stack: the newest one receives the event. Waiters that a WhenAny abandoned therefore
        # never receive one.
        self._waiting[name].append(task := HostTask())
        return task

    @_begin.register
    def _(self, action: ContinueAsNew) -> HostTask:
        self.continue_as_new = action.input
        return _finished_task()

    @_begin.register
    def _(self, action: Unsupported) -> HostTask:
        raise ReplayFailed(f"{action.action_type.name} is not supported by the local durable executor.")

    @_begin.register(CallActivity)
    def _call_activity(self, action: CallActivity | CallActivityWithRetry) -> HostTask:
        _require(action.function_name, self.scope.activities, "activity")
        return self._schedule(lambda task_id: ActivityRequest(task_id, action.function_name, action.input))

    @_begin.register(CallSubOrchestrator)
    def _call_child(self, action: CallSubOrchestrator) -> HostTask:
        _require(action.function_name, self.scope.orchestrators, "orchestrator")
        child_id = action.instance_id
        if child_id and child_id in (self.scope.instance_id, self.scope.parent_instance_id):
            raise ReplayFailed(
                "The instance ID of a sub-orchestration must be different than the instance ID of a parent "
                f"orchestration: '{child_id}'."
            )
        return self._schedule(
            lambda task_id: ChildRequest(
                task_id,
                action.function_name,
                action.input,
                child_id or f"{self.scope.execution_id}:{task_id}",
                action.version or "",
            )
        )

    def _create_timer(self, fire_at: datetime, *, cancelled: bool = False) -> HostTask:
        task = self._schedule(lambda task_id: TimerRequest(task_id, fire_at, cancelled))
        if cancelled:
            # The host cancels a timer right after creating it. A replay therefore sees the timer, and a
            # WhenAny that contains it, finish before anything else: see "Traps" in
            # docs/internals/durable-executor.md.
            task_id = self._next_id - 1
            self.cancelled_timers.add(task_id)
            self.open_tasks.pop(task_id).finish()
        return task

    def _schedule(self, request: Callable[[int], Request]) -> HostTask:
        task_id, self._next_id = self._next_id, self._next_id + 1
        self.unconfirmed[task_id] = request(task_id)
        self.open_tasks[task_id] = task = HostTask()
        return task

    def _raise_event(self, event: HistoryEvent) -> None:
        name = event.name or ""
        if self.continue_as_new is not None:
            self.carried_events.append(event)
        elif self._waiting[name]:
            self._waiting[name].pop().finish()
        else:
            self._buffered[name].append(event)

    def _confirm(self, event: HistoryEvent) -> None:
        """Match a scheduling event in the history with the request that has the same sequence number."""
        request = self.unconfirmed.pop(event.event_id, None)
        expected = REQUEST_OF_EVENT[event.event_type]
        description = None if request is None else describe(type(request), getattr(request, "name", None))
        before = describe(expected, event.name)
        if description != before:
            instead = f"produced {description} there" if description else "has not (yet?) scheduled this task"
            raise ReplayFailed(
                "Non-Deterministic workflow detected: a previous execution of this orchestration scheduled "
                f"{before} with sequence ID {event.event_id}, but the current replay {instead}. Was a change "
                "made to the orchestrator code after this instance had already started running?"
            )


def _finished_task() -> HostTask:
    task = HostTask()
    task.finish()
    return task


def _require(name: str, names: Collection[str], kind: str) -> None:
    if name not in names:
        raise ReplayFailed(unknown_function(name, kind, names))
