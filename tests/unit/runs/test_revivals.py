"""Tests for reviving lost orchestrations: the number of revivals and the remaining time."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.access.models import UserContext
from shared.runs.events import ResumedStatus, RunEvent, StepStatus, SubagentStatus
from shared.runs.models import RunRequest
from shared.runs.revivals import MAX_REVIVALS, RevivalCount, judge
from shared.runs.step_time import StepTime
from tests.fakes.services import fake_settings

NOW = datetime(2026, 1, 15, 9, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(minutes=10)


def counted(count: int, seconds_ago: float) -> RevivalCount:
    return RevivalCount(count=count, revived_at=NOW - timedelta(seconds=seconds_ago))


@pytest.mark.parametrize(
    ("before", "asked_at", "verdict"),
    [
        (None, NOW - timedelta(minutes=9), "revive"),
        (None, LONG_AGO, "give_up"),
        (None, None, "revive"),
        (counted(1, 2), NOW, "wait"),  # another process is reviving the run at this moment
        (counted(MAX_REVIVALS, 2), NOW, "wait"),
        (counted(MAX_REVIVALS - 1, 20), NOW, "revive"),
        (counted(MAX_REVIVALS, 20), NOW, "give_up"),
    ],
)
def test_a_run_is_revived_three_times_within_ten_minutes(
    before: RevivalCount | None, asked_at: datetime | None, verdict: str
) -> None:
    assert judge(before, asked_at, NOW) == verdict


def left_s(step: int, marks: list[tuple[str, int, float]]) -> float:
    """Return the seconds left for `step` in a run that started 30 s ago and may take 60 s.

    `marks`: of its log: what began, at which step, and how many seconds ago.
    """
    request = RunRequest(
        run_id="r", thread_id="t", user=UserContext(user_id="anna"), question="?", created_at=ago(30)
    )
    time = StepTime(fake_settings(max_total_latency_ms=60_000), request)
    return time.without_losses([mark(*one) for one in marks], step).left.remaining_s


def mark(state: str, number: int, seconds: float) -> RunEvent:
    """Return an event `seconds` ago: of step `number`, or for `child …` of the first turn of that
    sub-agent.
    """
    if state == "resumed":
        return ResumedStatus(at=ago(seconds))
    if state.startswith("child"):
        phase = state.removeprefix("child ")
        fields = {"phase": phase, "turn": 1, "passages": 0, "findings": 0, "proved": 0}
        return SubagentStatus.model_validate({**fields, "step": 2, "child": number, "at": ago(seconds)})
    return StepStatus.model_validate(
        {"step": number, "state": state, "attempt": f"{seconds}", "at": ago(seconds)}
    )


def ago(seconds: float) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("step", "marks", "left"),
    [
        (1, [], 30),
        (3, [("started", 1, 30), ("started", 2, 20)], 30),
        (2, [("started", 1, 30), ("started", 2, 20)], 30 + 20),  # the work of these 20 s was lost
        (3, [("started", 1, 30), ("started", 2, 20), ("restarted", 2, 5)], 30 + 15),
        (3, [("started", 1, 30), ("resumed", 0, 4)], 56),
        (2, [("started", 1, 30), ("started", 2, 20), ("resumed", 0, 4)], 60),
        (3, [("child turn", 0, 20), ("child turn", 1, 20), ("child turn", 1, 8), ("child ended", 1, 1)], 42),
        (3, [("child turn", 0, 20), ("child failed", 0, 10), ("child turn", 0, 9)], 30),
    ],
)
def test_time_that_was_lost_is_not_the_question_s(
    step: int, marks: list[tuple[str, int, float]], left: float
) -> None:
    assert left_s(step, marks) == pytest.approx(left, abs=3)
