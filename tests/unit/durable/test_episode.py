"""Which waiting events an episode takes."""

import pytest

from local.durable.episode import take_in
from local.durable.history import EventType, HistoryEvent

SUSPEND, RESUME = EventType.EXECUTION_SUSPENDED, EventType.EXECUTION_RESUMED
TERMINATE = EventType.EXECUTION_TERMINATED
A, B = "a", "b"


def event(what: EventType | str) -> HistoryEvent:
    kind = EventType.EVENT_RAISED if isinstance(what, str) else what
    name = what if isinstance(what, str) else None
    return HistoryEvent(event_type=kind, timestamp="2026-01-01T00:00:00Z", name=name)


@pytest.mark.parametrize(
    ("suspended", "waiting", "taken", "suspended_after"),
    [
        (False, [A, B], [A, B], False),
        (True, [A, B], [], True),
        (False, [A, SUSPEND, B], [A, SUSPEND], True),
        (True, [A, RESUME, B], [RESUME, A, B], False),
        (True, [A, RESUME, SUSPEND, B], [RESUME, A, SUSPEND], True),
        (False, [SUSPEND, A, RESUME, B], [SUSPEND, RESUME, A, B], False),
        (True, [A, SUSPEND], [SUSPEND], True),
    ],
)
def test_a_suspended_instance_takes_its_events_when_it_is_resumed(
    suspended: bool,
    waiting: list[EventType | str],
    taken: list[EventType | str],
    suspended_after: bool,
) -> None:
    events = [event(what) for what in waiting]
    intake, positions = take_in(events, suspended=suspended)

    assert intake.taken == [event(what) for what in taken]
    assert intake.suspended is suspended_after
    assert sorted(positions) == sorted(waiting.index(what) for what in taken)


def test_termination_is_taken_at_once_with_all_that_waits() -> None:
    events = [event(A), event(TERMINATE), event(B)]
    intake, positions = take_in(events, suspended=True)

    assert intake.terminated == events[1]
    assert positions == [0, 1, 2]
