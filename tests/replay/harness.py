"""Runs an orchestrator as the durable host would, with scripted results, on a virtual clock and without a
host.

Each episode passes the complete history to the handler of the SDK. A `Script` answers activities, children,
timers and external events, one event per episode, in the order of their times. The harness also checks that
every replay yields the same actions, that earlier actions never change (a timer may become cancelled), and
that all payloads are plain JSON of less than 16 KiB. No real time passes: replies and timers are only ordered
by their times.

    run = simulate(answer_question, {"question": "…"}, Script(
        activities={"plan": lambda _: {"steps": 2}, "retrieve": lambda _: Reply([], after_s=3)},
        children={"run_sub_agent": lambda _: Reply({"status": "ok"}, after_s=60)},
        events=[RaisedEvent("clarified", {"text": "…"}, at_s=5)],
    ))
    assert run.output["status"] == "complete"
    assert run.finished_after_s < 25          # under the open-task rule, see below
    run.record("answer_question", "tests/histories/answer_question.json")

The open-task rule: a host completes an orchestration only when no activity, child or uncancelled timer is
open. `Run.left_open` names the tasks that were open when the generator returned; `finished_after_s` includes
the wait for them.
"""

import heapq
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.replay.history import ActionType, EventType, JsonObject, event, leaf_actions, moment
from tests.replay.recording import Episode, Recording
from tests.replay.sdk import Handler, NonDeterminismError, check_payload, first_difference
from tests.replay.tasks import FAR_S, OpenTask, open_task

MAX_EPISODES = 1000
INSTANCE_ID = "instance-1"


class ScriptError(AssertionError):
    """Error raised if the script has no reply to the orchestrator's request, or the orchestrator waits
    forever.
    """


@dataclass(frozen=True)
class Reply:
    """The result of an activity or child, and the virtual seconds until it arrives.

    With `failure`, the task fails with this text. `terminates` names child instances that the activity
    terminates, as an activity with a durable client can.
    """

    value: object = None
    after_s: float = 0.0
    failure: str | None = None
    terminates: Sequence[str] = ()


@dataclass(frozen=True)
class RaisedEvent:
    """An external event. The payload is encoded twice, as by the real client, so the orchestrator receives
    JSON text.
    """

    name: str
    value: object
    at_s: float = 0.0


@dataclass(frozen=True)
class Script:
    """Replies by name. A reply is a function of the input that returns a plain value or a `Reply`."""

    activities: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)
    children: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)
    events: Sequence[RaisedEvent] = ()


@dataclass(frozen=True)
class Run:
    """The result of a simulation. `continued_with` is the new input if the orchestration ended by
    continue_as_new.
    """

    output: Any
    error: str | None
    custom_status: Any
    continued_with: Any
    calls: Sequence[tuple[str, Any]]
    returned_after_s: float
    finished_after_s: float
    left_open: Sequence[str]
    recording: Recording

    def record(self, orchestrator: str, path: Path | str) -> None:
        """Write the history and the state after each episode, from which `replay_recording` checks later
        code.
        """
        self.recording.write(orchestrator, Path(path))


def simulate(
    orchestrator: Any, orchestration_input: object, script: Script, *, instance_id: str = INSTANCE_ID
) -> Run:
    """Run an orchestrator to its end. It may be a generator function or a decorated one.

    Raises:
        NonDeterminismError, PayloadError: The orchestrator violates a rule of replay.
        ScriptError: The script has no reply for a request, or the orchestrator waits forever.
    """
    return _Simulation(Handler(orchestrator), orchestration_input, script, instance_id).run()


class _Simulation:
    def __init__(
        self, handler: Handler, orchestration_input: object, script: Script, instance_id: str
    ) -> None:
        check_payload(orchestration_input, "input")
        self._handler = handler
        self._script = script
        self._recording = Recording(instance_id, json.dumps(orchestration_input))
        self._now_s = 0.0
        self._numbers = itertools.count()  # of tasks, counted in the same way by SDK and host
        self._order = itertools.count()  # of events at the same instant
        self._due: list[tuple[float, int, JsonObject]] = []
        self._open: dict[int, OpenTask] = {}
        self._leaves: list[JsonObject] = []
        self._calls: list[tuple[str, Any]] = []

    def run(self) -> Run:
        for raised in script_events(self._script):
            self._push(raised[0], raised[1])
        started = event(
            EventType.EXECUTION_STARTED,
            0.0,
            Name="orchestrator",
            Version="",
            Input=self._recording.input_json,
        )
        state = self._episode(started)
        while not (state["isDone"] or state.get("error")):
            state = self._episode(self._next_event())
        return self._result(state)

    def _next_event(self) -> JsonObject:
        while self._due:
            at_s, _, arrived = heapq.heappop(self._due)
            if self._is_awaited(arrived):
                self._now_s = max(self._now_s, at_s)
                return arrived
        raise ScriptError(f"the orchestrator waits for ever; open: {self._open_names()}")

    def _is_awaited(self, arrived: JsonObject) -> bool:
        number = arrived.get("TaskScheduledId", arrived.get("TimerId"))
        return number is None or number in self._open

    def _episode(self, arrived: JsonObject) -> JsonObject:
        if len(self._recording.episodes) >= MAX_EPISODES:
            raise ScriptError(f"no end after {MAX_EPISODES} episodes")
        history = self._recording.history
        arrived = {**arrived, "Timestamp": event(EventType.EVENT_RAISED, self._now_s)["Timestamp"]}
        history += [event(EventType.ORCHESTRATOR_STARTED, self._now_s), arrived]
        self._settle(arrived)
        state = self._handler.replay(history, self._recording.instance_id, self._recording.input_json)
        self._recording.episodes.append(Episode(len(history), state))
        self._accept(leaf_actions(state))
        history.append(event(EventType.ORCHESTRATOR_COMPLETED, self._now_s))
        return state

    def _settle(self, arrived: JsonObject) -> None:
        """Close the task that the event completes. A task with retries continues under the next sequence
        number.
        """
        number = arrived.get("TaskScheduledId", arrived.get("TimerId"))
        if number is None:
            return
        following = self._open.pop(number).following(failed="Reason" in arrived)
        if following is not None:
            self._start(following)

    def _accept(self, leaves: list[JsonObject]) -> None:
        """Check that the actions match those seen before, and start the new ones."""
        for index, before in enumerate(self._leaves):
            after = leaves[index] if index < len(leaves) else None
            if after is None or {**before, "isCanceled": 0} != {**after, "isCanceled": 0}:
                raise NonDeterminismError(
                    f"action {index} changed: {first_difference(before, after, 'action')}"
                )
            if after.get("isCanceled") and not before.get("isCanceled"):
                self._cancel_timer(before)
        for action in leaves[len(self._leaves) :]:
            task = open_task(action)
            if task is not None:
                self._start(task)
        self._leaves = leaves

    def _cancel_timer(self, action: JsonObject) -> None:
        for number, task in list(self._open.items()):
            if task.kind is ActionType.TIMER and task.action == action:
                del self._open[number]
                return

    def _start(self, task: OpenTask) -> None:
        number = next(self._numbers)
        self._open[number] = task
        scheduled = {"EventId": number, "Name": task.name, "Input": task.input_json}
        self._recording.history.append(event(task.scheduled_event, self._now_s, **scheduled))
        # The task was cancelled in the episode that created it. It has a sequence number but isn't open.
        if task.is_cancelled:
            del self._open[number]
            return
        if task.is_timer:
            fires_at_s = max(self._now_s, task.fires_at_s(self._now_s))
            fired = {"TimerId": number, "FireAt": moment(min(fires_at_s, FAR_S)).isoformat()}
            self._push(fires_at_s, event(EventType.TIMER_FIRED, fires_at_s, **fired))
            return
        self._answer(number, task)

    def _answer(self, number: int, task: OpenTask) -> None:
        check_payload(task.payload, f"the input of {task.name}")
        answers = self._script.children if task.is_child else self._script.activities
        if task.name not in answers:
            raise ScriptError(f"the script has no answer for {task.name}")
        self._calls.append((task.name, task.payload))
        answer = answers[task.name](task.payload)
        reply = answer if isinstance(answer, Reply) else Reply(answer)
        check_payload(reply.value, f"the result of {task.name}")
        at_s = self._now_s + reply.after_s
        for instance_id in reply.terminates:
            self._terminate(instance_id, at_s)
        self._push(at_s, task.ended(number, at_s, json.dumps(reply.value), reply.failure))

    def _terminate(self, instance_id: str, at_s: float) -> None:
        for number, task in self._open.items():
            if task.is_child and task.instance_id == instance_id:
                self._push(at_s, task.ended(number, at_s, "null", "terminated"))

    def _push(self, at_s: float, arriving: JsonObject) -> None:
        heapq.heappush(self._due, (at_s, next(self._order), arriving))

    def _open_names(self) -> list[str]:
        return [task.name for task in self._open.values()]

    def _result(self, state: JsonObject) -> Run:
        left_open = self._open_names()
        ends = {
            arriving.get("TaskScheduledId", arriving.get("TimerId")): at_s
            for at_s, _, arriving in sorted(self._due, key=lambda due: due[:2], reverse=True)
        }
        finished_after_s = max([self._now_s, *(ends[number] for number in self._open if number in ends)])
        last = self._leaves[-1] if self._leaves else {}
        continued = last.get("actionType") == ActionType.CONTINUE_AS_NEW
        return Run(
            output=state.get("output"),
            error=state.get("error"),
            custom_status=state.get("customStatus"),
            continued_with=_decoded(last.get("input")) if continued else None,
            calls=self._calls,
            returned_after_s=self._now_s,
            finished_after_s=finished_after_s,
            left_open=left_open,
            recording=self._recording,
        )


def script_events(script: Script) -> list[tuple[float, JsonObject]]:
    """Return the script's external events with their times, encoded as by the real client."""
    timed_events = []
    for raised in script.events:
        check_payload(raised.value, f"event {raised.name}")
        encoded = json.dumps(json.dumps(raised.value))
        timed_events.append(
            (raised.at_s, event(EventType.EVENT_RAISED, raised.at_s, Name=raised.name, Input=encoded))
        )
    return timed_events


def _decoded(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value
