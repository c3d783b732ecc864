"""Runs child orchestrations concurrently until a common deadline, and terminates late children.

The functions are generators for use in orchestrators. Two rules of the host determine their design:

- A parent completes only when it has no open child or timer. Late children are therefore terminated, by an
  activity because an orchestrator can't do that, and the timer is cancelled once all children have ended.
- The host registers each task only once. To it, a `task_any` of old tasks and a new task waits for the new
  task alone, and a timer that fires meanwhile has no effect. Children therefore start in waves, each with its
  own timer, and a wave starts when the previous wave has ended.

Children of a terminated child continue, so pass the deadline down to them.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import azure.durable_functions as df

from orchestrations.payloads import as_object, call_activity


@dataclass(frozen=True)
class Child:
    """A child orchestration to start. `instance_id` must be deterministic, so derive it from the parent's id
    and a position.
    """

    name: str
    payload: dict[str, Any]
    instance_id: str


@dataclass(frozen=True)
class ChildEnd:
    """The outcome of a child orchestration: its status and its result.

    Attributes:
        status: `failed` = it raised or returned no JSON object; `late` = the deadline passed, possibly before
            it was started.
        output: its result; empty unless it is done.
    """

    instance_id: str
    status: Literal["done", "failed", "late"]
    output: dict[str, Any]


MAX_RESTARTS = 3
RESTART_PAUSE = timedelta(seconds=4)  # a worker takes about as long to restart

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
    """Run children until they end or the deadline passes, and return their outcomes in the order of
    `children`.

    Failing children never raise. Results after the deadline are ignored.

    Args:
        deadline: an instant with zone.
        at_once: maximum number of concurrent children; None = no limit.
        on_end: called with each end as it arrives, for a status, and again on every replay.
    """
    size = max(at_once or len(children), 1)
    ends: list[ChildEnd] = []
    for start in range(0, len(children), size):
        wave = children[start : start + size]
        if context.current_utc_datetime >= deadline:
            ends += [_report_end(ChildEnd(child.instance_id, "late", {}), on_end) for child in wave]
        else:
            ends += yield from _race_again(context, wave, deadline, on_end)
    return ends


def _race_again(
    context: df.DurableOrchestrationContext,
    wave: Sequence[Child],
    deadline: datetime,
    on_end: Watcher | None,
) -> Ends:
    """Run a wave of children, and restart failed ones up to MAX_RESTARTS times, in case their worker died."""
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
        ends[place] = _report_end(_end_of(wave[place], winner.result), on_end)
    late = [child.instance_id for place, child in enumerate(wave) if place not in ends]
    if late:
        yield from _terminate(context, late)
    elif not timer.is_completed:
        timer.cancel()
    return [
        ends[place] if place in ends else _report_end(ChildEnd(child.instance_id, "late", {}), on_end)
        for place, child in enumerate(wave)
    ]


def _terminate(context: df.DurableOrchestrationContext, instance_ids: list[str]) -> Generator[Any, Any, None]:
    payload = {"instance_ids": instance_ids, "reason": "The deadline came first."}
    try:
        yield call_activity(context, "terminate_instances", payload)
    except Exception:  # noqa: BLE001  # they end by themselves then, and the parent a little later
        return


def _end_of(child: Child, result: Any) -> ChildEnd:
    # A failed task also counts as completed. Its result is the exception.
    if isinstance(result, Exception):
        return ChildEnd(child.instance_id, "failed", {})
    try:
        return ChildEnd(child.instance_id, "done", as_object(result))
    except ValueError:
        return ChildEnd(child.instance_id, "failed", {})


def _report_end(end: ChildEnd, on_end: Watcher | None) -> ChildEnd:
    if on_end is not None:
        on_end(end)
    return end
