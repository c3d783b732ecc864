"""Racing children against a deadline: the one place for `task_any`, its timer, and ending the late ones.

Used by orchestrators only, inside their generators. Two rules of the host shape it:

- A parent completes only when no child and no timer of it is open. So a child that is late is terminated, by
  an activity (an orchestrator cannot), and the timer is cancelled as soon as nobody races it.
- The host awaits what a generator yielded in order, and a task that was yielded before is not sent to it
  again. A `task_any` with one new task among old ones is for the host a wait for the new one alone: a timer
  that fires meanwhile would move nothing. So tasks are started in waves, each with its own timer, and a
  wave begins when the one before has ended.

A terminated child's own children continue: give what they need to know of the deadline down to them.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import azure.durable_functions as df

from orchestrations.payloads import as_object, call_activity


@dataclass(frozen=True)
class Child:
    """An orchestration to start. `instance_id` is made from the parent's and a place, never by chance."""

    name: str
    payload: dict[str, Any]
    instance_id: str


@dataclass(frozen=True)
class ChildEnd:
    """How a child ended.

    Attributes:
        status: `failed` = it raised, or answered with no JSON object; `late` = the deadline came first,
            maybe before it was started.
        output: what it answered; empty unless it is done.
    """

    instance_id: str
    status: Literal["done", "failed", "late"]
    output: dict[str, Any]


MAX_RESTARTS = 3
RESTART_PAUSE = timedelta(seconds=4)  # about as long as the next worker takes

Ends = Generator[Any, Any, list[ChildEnd]]
Watcher = Callable[[ChildEnd], None]


def race(
    context: df.DurableOrchestrationContext,
    children: Sequence[Child],
    deadline: datetime,
    *,
    at_once: int | None = None,
    on_end: Watcher | None = None,
) -> Ends:
    """Run children until they end or the deadline comes; their ends in the order of `children`.

    Never raises for what a child does. What a child answers after the deadline is ignored.

    Args:
        deadline: an instant with zone.
        at_once: how many are at work at the same time; None = all.
        on_end: called with each end as it comes, for a status; called again on every replay.
    """
    size = max(at_once or len(children), 1)
    ends: list[ChildEnd] = []
    for start in range(0, len(children), size):
        wave = children[start : start + size]
        if context.current_utc_datetime >= deadline:
            ends += [_told(ChildEnd(child.instance_id, "late", {}), on_end) for child in wave]
        else:
            ends += yield from _race_again(context, wave, deadline, on_end)
    return ends


def _race_again(
    context: df.DurableOrchestrationContext,
    wave: Sequence[Child],
    deadline: datetime,
    on_end: Watcher | None,
) -> Ends:
    """Run a wave, and again those of its children that failed: their worker died, and they with it."""
    ends = yield from _race_wave(context, wave, deadline, on_end)
    for _ in range(MAX_RESTARTS):
        lost = [place for place, end in enumerate(ends) if end.status == "failed"]
        due = context.current_utc_datetime + RESTART_PAUSE
        if not lost or due >= deadline:
            break
        yield context.create_timer(due)
        again = yield from _race_wave(context, [wave[place] for place in lost], deadline, on_end)
        for place, end in zip(lost, again, strict=True):
            ends[place] = end
    return ends


def _race_wave(
    context: df.DurableOrchestrationContext,
    wave: Sequence[Child],
    deadline: datetime,
    on_end: Watcher | None,
) -> Ends:
    tasks = [context.call_sub_orchestrator(child.name, child.payload, child.instance_id) for child in wave]
    timer = context.create_timer(deadline)
    ends: dict[int, ChildEnd] = {}
    while len(ends) < len(wave):
        running = [task for place, task in enumerate(tasks) if place not in ends]
        winner = yield context.task_any([*running, timer])
        if winner is timer:
            break
        place = next(place for place, task in enumerate(tasks) if task is winner)
        ends[place] = _told(_end_of(wave[place], winner.result), on_end)
    late = [child.instance_id for place, child in enumerate(wave) if place not in ends]
    if late:
        yield from _terminate(context, late)
    elif not timer.is_completed:
        timer.cancel()
    return [
        ends[place] if place in ends else _told(ChildEnd(child.instance_id, "late", {}), on_end)
        for place, child in enumerate(wave)
    ]


def _terminate(context: df.DurableOrchestrationContext, instance_ids: list[str]) -> Generator[Any, Any, None]:
    payload = {"instance_ids": instance_ids, "reason": "The deadline came first."}
    try:
        yield call_activity(context, "terminate_instances", payload)
    except Exception:  # noqa: BLE001  # they end by themselves then, and the parent a little later
        return


def _end_of(child: Child, result: Any) -> ChildEnd:
    # A failed task is completed, too: its result is the exception.
    if isinstance(result, Exception):
        return ChildEnd(child.instance_id, "failed", {})
    try:
        return ChildEnd(child.instance_id, "done", as_object(result))
    except ValueError:
        return ChildEnd(child.instance_id, "failed", {})


def _told(end: ChildEnd, on_end: Watcher | None) -> ChildEnd:
    if on_end is not None:
        on_end(end)
    return end
