"""The sub-agents' part of the script: turns, retries and the smaller profile. Pure."""

from datetime import timedelta

from shared.answering.script import Script, Step
from shared.answering.steps import Observation
from shared.answering.subagent_models import SubagentEnd, SubagentStart, TurnInput, TurnResult
from shared.runs.models import ChildStatus


class SubAgent:
    """A sub-agent, which takes turns until its report is written or a limit ends it.

    A failed turn is retried after a delay, then a smaller profile reports from the existing evidence. No turn
    begins after the deadline.
    """

    def __init__(self, start: SubagentStart) -> None:
        self.step = 1  # number of the turn
        self._start = start
        self._result = TurnResult(status="go_on")

    def first_step(self) -> Script[TurnResult | SubagentEnd]:
        """Take the first turn."""
        if not self._start.profiles or self._start.max_turns < 1:
            return self._end("failed")
        return (yield from self._turn())

    def next_step(self, seen: TurnResult) -> Script[TurnResult | SubagentEnd]:
        """Take the next turn."""
        self.step += 1
        return (yield from self._turn())

    def note(self, observation: Observation) -> None:
        """Do nothing: a sub-agent neither asks the user nor has sub-agents."""

    def close(self, seen: SubagentEnd) -> Script[SubagentEnd]:
        """Return the end. The turn has already stored the report."""
        yield from ()
        return seen

    def _turn(self) -> Script[TurnResult | SubagentEnd]:
        """Take a turn, with retries and a smaller profile if it fails."""
        start, place, attempt = self._start, 0, 0
        closing = self.step >= start.max_turns
        while True:
            turn = TurnInput(
                **start.place,
                turn=self.step,
                attempt=attempt,
                profile=start.profiles[place],
                closing=closing,
            )
            delay_s = start.retry_backoff_ms / 1000 if 0 < attempt <= start.retry_count else 0.0
            before = start.deadline + timedelta(seconds=self._result.lost_s)
            result: TurnResult | None = yield Step(turn, delay_s=delay_s, before=before)
            if result is None:
                return self._end(self._status_of_findings())
            self._result = _added(self._result, result)
            if result.status == "go_on" and not closing:
                return self._result
            if result.status != "failed":
                return self._end("done" if result.status == "done" else self._status_of_findings())
            if result.retryable and attempt < start.retry_count:
                attempt += 1
                continue
            if place + 1 < len(start.profiles):
                place += 1
            elif not result.retryable or closing:
                return self._end(self._status_of_findings())
            # From now on, attempts no longer search, but report from the existing evidence.
            attempt, closing = max(attempt, start.retry_count) + 1, True

    def _status_of_findings(self) -> ChildStatus:
        return "partial" if self._result.findings else "failed"

    def _end(self, status: ChildStatus) -> SubagentEnd:
        is_unfinished = self._result.status in ("go_on", "failed")
        return SubagentEnd(
            child_id=self._start.child_id,
            status=status,
            turns=self.step - 1 if is_unfinished else self.step,
            tokens=self._result.tokens,
            cost_usd=self._result.cost_usd,
        )


def _added(before: TurnResult, result: TurnResult) -> TurnResult:
    """Return a turn's result with updated totals, which a crashed turn doesn't know."""
    known_tokens = (tokens for tokens in (before.tokens, result.tokens) if tokens is not None)
    return result.model_copy(
        update={
            "tokens": max(known_tokens, default=None),
            "cost_usd": max(before.cost_usd, result.cost_usd),
            "findings": max(before.findings, result.findings),
            "lost_s": max(before.lost_s, result.lost_s),
        }
    )
