"""`reply_in_channel` on a virtual clock: the activities run one after the other, and every run ends."""

from typing import Any

import pytest

from orchestrations.reply_in_channel import reply_in_channel
from shared.teams.models import ReplyStep
from tests.replay.harness import Reply, Run, Script, simulate

GIVEN = {"reply_key": "a1", "folder": "2026-01-01/a1"}
TAKEN = ReplyStep.model_validate(GIVEN)
FOLLOW = TAKEN.model_copy(update={"kind": "follow", "run_id": "a1"})
LATER = FOLLOW.model_copy(update={"part": 1, "after": 12})
AGAIN = FOLLOW.model_copy(update={"attempt": 1, "delay_s": 8.0})
DAYS_S = 3 * 86400.0
EXPIRE = FOLLOW.model_copy(update={"kind": "expire", "ask_step": 3, "after": 9, "delay_s": DAYS_S})
END = TAKEN.model_copy(update={"kind": "end"})


def reply(*following: ReplyStep | Reply, **fields: Any) -> Run:
    """Run a reply. To record a history, call `record` on the result with the name "reply_in_channel"."""
    answers = list(following)

    def reply_step(payload: Any) -> object:
        answer = answers.pop(0)
        return answer if isinstance(answer, Reply) else answer.model_dump(mode="json")

    return simulate(reply_in_channel, {**GIVEN, **fields}, Script(activities={"reply_step": reply_step}))


def kinds(run: Run) -> list[str]:
    return [payload["kind"] for _, payload in run.calls]


def test_a_message_is_taken_and_its_run_followed_to_the_end() -> None:
    run = reply(FOLLOW, END)
    assert kinds(run) == ["take", "follow"]
    assert run.output == {"status": "completed", "steps": 2}
    assert run.left_open == []


def test_a_long_run_is_followed_in_parts() -> None:
    run = reply(FOLLOW, LATER, END)
    assert [(payload["part"], payload["after"]) for _, payload in run.calls] == [(0, 0), (0, 0), (1, 12)]


def test_a_step_may_have_to_wait_and_then_is_not_told_to_wait_again() -> None:
    run = reply(FOLLOW, AGAIN, END)
    assert run.finished_after_s == 8
    assert [payload["delay_s"] for _, payload in run.calls] == [0.0, 0.0, 0.0]
    assert run.calls[-1][1]["attempt"] == 1


def test_a_question_that_nobody_answers_is_looked_at_after_days() -> None:
    run = reply(FOLLOW, EXPIRE, END)
    assert kinds(run) == ["take", "follow", "expire"]
    assert run.finished_after_s == DAYS_S


def test_a_step_that_was_lost_is_performed_again() -> None:
    run = reply(FOLLOW, Reply(failure="the worker died"), END)
    assert kinds(run) == ["take", "follow", "follow"]
    assert run.output == {"status": "completed", "steps": 2}


def test_there_is_an_end_even_if_a_step_always_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrations.reply_in_channel.MAX_STEPS", 20)
    run = reply(*(LATER for _ in range(20)))
    assert run.output == {"status": "failed", "steps": 20}


def test_the_status_shows_where_the_reply_stands() -> None:
    assert reply(FOLLOW, END).custom_status == {"step": "follow", "run_id": "a1", "attempt": 0}
