"""The part of the script that is specific to sub-agents: turns, retries and the fallback to a smaller
profile. Pure.
"""

from datetime import timedelta

from shared.answering.script import Script, Step, retry
from shared.answering.steps import Observation, StepResult
from shared.answering.subagent_models import (
    CRASHED,
    ReadTask,
    SubagentEnd,
    SubagentPlace,
    TakeSubagentTurn,
    TaskRead,
    TurnResult,
)
from shared.runs.models import ChildStatus


class SubAgent:
    """The agent that works on a delegated task. It takes turns until its report is written or a limit ends
    it.

    A failed turn is retried after a delay, then a smaller profile reports from the existing evidence. No turn
    begins after the deadline.

    Attributes:
        step: the number of its turn, counted from 1; 0 before the first.
        task: the limits of its task; None until they have been read.
    """

    def __init__(self, place: SubagentPlace) -> None:
        self.step = 0
        self.task: TaskRead | None = None
        self._child_id = place.child_id
        self._result = TurnResult(status="go_on")

    def first_step(self) -> Script[TurnResult | TaskRead | SubagentEnd]:
        """Read the limits of the task from the journal."""

        def attempt(tries: int, delay_s: float) -> Script[Observation]:
            result: StepResult = yield Step(ReadTask(), delay_s=delay_s)
            return result.observation

        observation = yield from retry("prepare", attempt)
        if isinstance(observation, TaskRead) and observation.profiles and observation.max_turns:
            self.task = observation
            return observation
        return self._end("failed")

    def next_step(self, observation: TurnResult | TaskRead) -> Script[TurnResult | TaskRead | SubagentEnd]:
        """Take the next turn of the sub-agent, with retries."""
        assert self.task is not None  # noqa: S101  # otherwise the first step ended the sub-agent
        self.step += 1
        return (yield from self._turn(self.task))

    def record(self, observation: Observation) -> None:
        """Do nothing, because a sub-agent neither asks the user nor starts sub-agents."""

    def close(self, observation: SubagentEnd) -> Script[SubagentEnd]:
        """Return the end of the sub-agent. Its last turn has already stored the report."""
        yield from ()
        return observation

    def _turn(self, task: TaskRead) -> Script[TurnResult | SubagentEnd]:
        """Take a turn. If it fails, retry it, and finally let a smaller profile write the report."""
        place, attempt = 0, 0
        closing = self.step >= task.max_turns
        while True:
            turn = TakeSubagentTurn(
                turn=self.step, attempt=attempt, profile=task.profiles[place], closing=closing
            )
            delay_s = task.retry_backoff_ms / 1000 if 0 < attempt <= task.retry_count else 0.0
            before = task.deadline + timedelta(seconds=self._result.lost_s)
            performed: StepResult | None = yield Step(turn, delay_s=delay_s, before=before)
            if performed is None:
                return self._end(self._status_of_findings())
            result = performed.observation if isinstance(performed.observation, TurnResult) else CRASHED
            self._result = _with_totals(self._result, result)
            if result.status == "go_on" and not closing:
                return self._result
            if result.status != "failed":
                return self._end("done" if result.status == "done" else self._status_of_findings())
            if result.retryable and attempt < task.retry_count:
                attempt += 1
                continue
            if place + 1 < len(task.profiles):
                place += 1
            elif not result.retryable or closing:
                return self._end(self._status_of_findings())
            # From here on, attempts write the report from the existing evidence and search no more.
            attempt, closing = max(attempt, task.retry_count) + 1, True

    def _status_of_findings(self) -> ChildStatus:
        return "partial" if self._result.findings else "failed"

    def _end(self, status: ChildStatus) -> SubagentEnd:
        is_unfinished = self._result.status in ("go_on", "failed")
        return SubagentEnd(
            child_id=self._child_id,
            status=status,
            turns=max(self.step - 1, 0) if is_unfinished else self.step,
            tokens=self._result.tokens,
            cost_usd=self._result.cost_usd,
        )


def _with_totals(before: TurnResult, result: TurnResult) -> TurnResult:
    """Return a turn's result whose totals are at least those of the previous turns, because a crashed turn
    reports none.
    """
    known_tokens = (tokens for tokens in (before.tokens, result.tokens) if tokens is not None)
    return result.model_copy(
        update={
            "tokens": max(known_tokens, default=None),
            "cost_usd": max(before.cost_usd, result.cost_usd),
            "findings": max(before.findings, result.findings),
            "lost_s": max(before.lost_s, result.lost_s),
        }
    )
