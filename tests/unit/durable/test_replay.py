"""The host's replay: sequence numbers, what is open, what a history must match."""

from datetime import UTC, datetime, timedelta

import pytest

from local.durable.actions import (
    Action,
    ActionType,
    CallActivity,
    CallActivityWithRetry,
    CallSubOrchestrator,
    ContinueAsNew,
    CreateTimer,
    RetryOptions,
    WaitForExternalEvent,
    WhenAll,
    WhenAny,
)
from local.durable.history import EventType, HistoryEvent, utc_text
from local.durable.replay import replay
from local.durable.work import (
    ActivityRequest,
    ChildRequest,
    ReplayFailed,
    ReplayOutcome,
    ReplayScope,
    TimerRequest,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCOPE = ReplayScope("me", "execution", "my-parent", orchestrators=["flow"], activities=["a", "b"])


def activity(name: str = "a") -> CallActivity:
    return CallActivity(actionType=ActionType.CALL_ACTIVITY, functionName=name, input="1")


def retried(attempts: int = 2) -> CallActivityWithRetry:
    options = RetryOptions(firstRetryIntervalInMilliseconds=500, maxNumberOfAttempts=attempts)
    return CallActivityWithRetry(
        actionType=ActionType.CALL_ACTIVITY_WITH_RETRY, functionName="a", input="1", retryOptions=options
    )


def timer(*, cancelled: bool = False) -> CreateTimer:
    fire_at = utc_text(NOW + timedelta(hours=1))
    return CreateTimer(actionType=ActionType.CREATE_TIMER, fireAt=fire_at, isCanceled=cancelled)


def awaited(name: str = "go") -> WaitForExternalEvent:
    return WaitForExternalEvent(actionType=ActionType.WAIT_FOR_EXTERNAL_EVENT, externalEventName=name)


def every(*actions: Action) -> WhenAll:
    return WhenAll(actionType=ActionType.WHEN_ALL, compoundActions=list(actions))


def first_of(*actions: Action) -> WhenAny:
    return WhenAny(actionType=ActionType.WHEN_ANY, compoundActions=list(actions))


def continue_as_new() -> ContinueAsNew:
    return ContinueAsNew(actionType=ActionType.CONTINUE_AS_NEW, input="{}")


def event(kind: EventType, **fields: object) -> HistoryEvent:
    return HistoryEvent.model_validate({"event_type": kind, "timestamp": utc_text(NOW), **fields})


def started() -> list[HistoryEvent]:
    return [event(EventType.ORCHESTRATOR_STARTED), event(EventType.EXECUTION_STARTED, name="flow")]


def scheduled(task_id: int, name: str = "a") -> HistoryEvent:
    return event(EventType.TASK_SCHEDULED, event_id=task_id, name=name)


def completed(task_id: int) -> HistoryEvent:
    return event(EventType.TASK_COMPLETED, task_scheduled_id=task_id, result="1")


def failed(task_id: int) -> HistoryEvent:
    return event(EventType.TASK_FAILED, task_scheduled_id=task_id, reason="no")


def fired(task_id: int) -> HistoryEvent:
    return event(EventType.TIMER_FIRED, timer_id=task_id)


def raised(name: str = "go") -> HistoryEvent:
    return event(EventType.EVENT_RAISED, name=name, input="1")


def run(actions: list[Action], *history: HistoryEvent) -> ReplayOutcome:
    return replay([*started(), *history], actions, SCOPE)


def ids(outcome: ReplayOutcome) -> list[int]:
    return [request.task_id for request in outcome.requests]


def test_only_the_first_unfinished_action_is_scheduled() -> None:
    outcome = run([activity("a"), activity("b")])

    assert outcome.requests == [ActivityRequest(0, "a", "1")]
    assert outcome.has_open_tasks
    assert not outcome.all_awaited


def test_leaves_are_numbered_depth_first_and_events_take_no_number() -> None:
    outcome = run([every(activity("a"), first_of(awaited(), timer(), activity("b")), activity("a"))])

    assert [(type(request).__name__, request.task_id) for request in outcome.requests] == [
        ("ActivityRequest", 0),
        ("TimerRequest", 1),
        ("ActivityRequest", 2),
        ("ActivityRequest", 3),
    ]


def test_work_in_the_history_is_not_scheduled_again() -> None:
    outcome = run([every(activity(), activity())], scheduled(0), scheduled(1), completed(1))

    assert outcome.requests == []
    assert outcome.has_open_tasks


def test_everything_is_done_when_the_last_action_has_ended() -> None:
    outcome = run([activity()], scheduled(0), completed(0))

    assert (outcome.has_open_tasks, outcome.all_awaited) == (False, True)


def test_the_loser_of_a_race_stays_open() -> None:
    outcome = run([first_of(activity(), activity())], scheduled(0), scheduled(1), completed(1))

    assert (outcome.has_open_tasks, outcome.all_awaited) == (True, True)


def test_an_awaited_event_is_not_an_open_task() -> None:
    assert not run([awaited()]).has_open_tasks


def test_a_cancelled_timer_is_not_an_open_task() -> None:
    history = [scheduled(0), event(EventType.TIMER_CREATED, event_id=1), completed(0)]
    outcome = run([first_of(activity(), timer(cancelled=True))], *history)

    assert (outcome.has_open_tasks, outcome.cancelled_timers) == (False, frozenset({1}))


def test_when_all_waits_for_the_others_after_a_failure() -> None:
    outcome = run([every(activity(), activity())], scheduled(0), scheduled(1), failed(0))

    assert not outcome.all_awaited


@pytest.mark.parametrize(
    ("history", "next_id", "due_s"),
    [
        ([], 0, None),
        ([failed(0)], 1, 0.5),
        ([failed(0), fired(1)], 2, None),
        ([failed(0), fired(1), failed(2)], 3, 0.0),
        ([failed(0), completed(1)], 1, 0.5),
    ],
)
def test_attempts_and_timers_take_turns_and_the_last_timer_is_due_at_once(
    history: list[HistoryEvent], next_id: int, due_s: float | None
) -> None:
    request = run([retried(attempts=2)], *history).requests[next_id]

    assert request.task_id == next_id
    if due_s is None:
        assert isinstance(request, ActivityRequest)
    else:
        assert isinstance(request, TimerRequest)
        assert request.fire_at == NOW + timedelta(seconds=due_s)


def test_after_the_last_timer_the_retries_are_over() -> None:
    outcome = run([retried(attempts=1), activity("b")], failed(0), fired(1))

    assert ids(outcome) == [0, 1, 2]
    assert outcome.requests[2] == ActivityRequest(2, "b", "1")


def test_an_early_event_waits_for_the_one_who_awaits_it() -> None:
    outcome = run([activity(), awaited()], scheduled(0), raised(), completed(0))

    assert outcome.all_awaited


def test_event_names_differ_by_case() -> None:
    assert not run([awaited("go")], raised("Go")).all_awaited


def test_the_newest_of_several_waiters_gets_the_event() -> None:
    """The first waiter was left behind in a race that the timer won."""
    history = [event(EventType.TIMER_CREATED, event_id=0), fired(0), raised()]

    assert run([first_of(awaited(), timer()), awaited()], *history).all_awaited


def test_events_after_continue_as_new_are_carried_on() -> None:
    early, awaited_one, late = raised("other"), raised("go"), raised("late")
    outcome = run([awaited(), continue_as_new()], early, awaited_one, late)

    assert outcome.continue_as_new == "{}"
    assert outcome.carried_events == [late]


def test_a_result_that_nobody_waits_for_is_ignored() -> None:
    outcome = run([activity()], scheduled(0), completed(0), completed(0), fired(7))

    assert outcome.all_awaited


def test_a_child_without_id_gets_one_of_execution_and_number() -> None:
    action = CallSubOrchestrator(
        actionType=ActionType.CALL_SUB_ORCHESTRATOR, functionName="flow", input="null"
    )
    outcome = run([activity(), action], scheduled(0), completed(0))

    assert outcome.requests == [ChildRequest(1, "flow", "null", "execution:1", "")]


@pytest.mark.parametrize("child_id", ["me", "my-parent"])
def test_a_child_may_not_be_its_own_ancestor(child_id: str) -> None:
    action = CallSubOrchestrator(
        actionType=ActionType.CALL_SUB_ORCHESTRATOR, functionName="flow", input="null", instanceId=child_id
    )
    with pytest.raises(ReplayFailed, match="must be different"):
        run([action])


@pytest.mark.parametrize(
    ("actions", "past"),
    [
        ([activity("b")], scheduled(0, "a")),
        ([timer()], scheduled(0, "a")),
        ([awaited()], scheduled(0, "a")),
        ([activity("a")], event(EventType.TIMER_CREATED, event_id=0)),
        ([activity("a")], scheduled(1, "a")),
        ([activity("a")], event(EventType.SUB_ORCHESTRATION_INSTANCE_CREATED, event_id=0, name="a")),
    ],
)
def test_a_history_that_does_not_fit_is_non_deterministic(actions: list[Action], past: HistoryEvent) -> None:
    with pytest.raises(ReplayFailed, match="Non-Deterministic workflow detected"):
        run(actions, past)


def test_an_unknown_activity_fails_the_instance() -> None:
    with pytest.raises(ReplayFailed, match=r"The function 'c' doesn't exist.*'a', 'b'"):
        run([activity("c")])
