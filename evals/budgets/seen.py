"""Observation of a run from outside the app, and the check whether the run stayed within its budgets.
Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evals.budgets.children import Child
from evals.budgets.questions import Kind
from local.run_all.api_client import LAST_EVENTS, StreamEvent

# Time in milliseconds by which the guarantee allows a run to exceed its budget.
EPSILON_MS = 750.0
Outcome = Literal["answer", "partial answer with warning", "abstention", "error", "none"]


@dataclass(frozen=True)
class Limits:
    """The limits of a run and of one sub-agent, in milliseconds, tokens and US dollars.

    `epsilon_ms` is the allowed overrun of the time budget.
    """

    latency_ms: int = 25_000
    tokens: int = 24_000
    child_tokens: int = 8_000
    children_usd: float = 0.08
    child_usd: float = 0.03
    epsilon_ms: float = EPSILON_MS


@dataclass(frozen=True)
class Spent:
    """The tokens and calls of a run, as counted by the model server. `largest_call` includes prompt and
    reply.
    """

    tokens: int
    largest_call: int
    calls: int
    by_children: int = 0


@dataclass(frozen=True)
class Seen:
    """Everything observed about one run from outside the app.

    Attributes:
        wall_ms: from sending the question to the last event; None if it didn't arrive in time.
        terminal_events: number in the log when read again; more than one is a defect.
        replay_differs: whether the replay differs from the first stream.
        orchestration_open: whether its orchestration was running long after the last event.
        decisions: delegation decisions with their reason codes.
        views: sub-agents as the run's owner sees them.
        spent: None if other runs used the model server at the same time.
        largest_seen: tokens of the largest recent call on the server, used if calls can't be attributed.
        load: of the machine over the last minute.
    """

    fault: str
    knobs: str
    kind: Kind
    question: str
    run_id: str
    wall_ms: float | None
    limits: Limits
    last_event: StreamEvent | None
    terminal_events: int = 1
    replay_differs: bool = False
    orchestration_open: bool = False
    decisions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    children: tuple[Child, ...] = ()
    views: tuple[dict[str, Any], ...] = ()
    spent: Spent | None = None
    largest_seen: int = 0
    load: float = 0.0
    reconnects: int = 0

    @property
    def answer(self) -> dict[str, Any]:
        last = self.last_event
        answer: dict[str, Any] = last.data["answer"] if last is not None and last.name == "complete" else {}
        return answer

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self.answer.get("warnings") or ())

    @property
    def outcome(self) -> Outcome:
        """The kind of result that the reader received."""
        if self.last_event is None:
            return "none"
        if self.last_event.name != "complete":
            return "error"
        if self.answer.get("abstained"):
            return "abstention"
        return "partial answer with warning" if self.warnings else "answer"

    @property
    def is_unanswered(self) -> bool:
        """Whether the reader received neither an abstention nor an answer with text."""
        return self.outcome in ("error", "none") or not str(self.answer.get("text", "")).strip()

    @property
    def is_unwarned(self) -> bool:
        """Whether the answer is truncated but carries no warning."""
        return bool(self.answer.get("truncated")) and not self.warnings

    @property
    def is_stuck(self) -> bool:
        return self.last_event is None or self.orchestration_open

    @property
    def overrun_ms(self) -> float:
        """Milliseconds by which the run exceeded its time budget; 0 if it stayed within the budget or never
        ended.
        """
        return max(0.0, (self.wall_ms or 0.0) - self.limits.latency_ms)

    @property
    def is_over_budget(self) -> bool:
        return self.wall_ms is None or self.overrun_ms > self.limits.epsilon_ms

    @property
    def children_alive(self) -> int:
        return sum(child.outlived for child in self.children)

    @property
    def is_over_tokens(self) -> bool:
        """Whether a token or cost budget was exceeded by more than one model call."""
        return bool(self.excesses)

    @property
    def excesses(self) -> tuple[str, ...]:
        """Descriptions of the token and cost budgets that were exceeded by more than one model call."""
        call = self.spent.largest_call if self.spent is not None else self.largest_seen
        excesses = []
        if self.spent is not None and self.spent.tokens > self.limits.tokens + call:
            excesses.append(f"{self.spent.tokens} tokens of {self.limits.tokens}, largest call {call}")
        usd = [float(view.get("cost_usd") or 0.0) for view in self.views]
        tokens = [int(view.get("tokens") or 0) for view in self.views]
        # The last call may exceed a sub-agent's budget. Its cost is unknown, so estimate it from the tokens
        # of the largest call.
        largest_usd = max(
            (cost / max(one, 1) * call for cost, one in zip(usd, tokens, strict=True)), default=0.0
        )
        if any(one > self.limits.child_tokens + call for one in tokens):
            excesses.append(f"a sub-agent with {max(tokens)} tokens of {self.limits.child_tokens}")
        if any(cost > self.limits.child_usd + largest_usd for cost in usd):
            excesses.append(f"a sub-agent for {max(usd)} of {self.limits.child_usd} USD")
        if sum(usd) > self.limits.children_usd + largest_usd:
            excesses.append(f"sub-agents for {sum(usd)} of {self.limits.children_usd} USD")
        return tuple(excesses)

    @property
    def is_duplicated(self) -> bool:
        return self.terminal_events > 1 or self.replay_differs

    @property
    def defects(self) -> tuple[str, ...]:
        """The names of the guarantees that the run violated."""
        defects = {
            "over budget": self.is_over_budget,
            "stuck": self.is_stuck,
            "children alive": self.children_alive > 0,
            "tokens over": self.is_over_tokens,
            "unanswered": self.is_unanswered,
            "ended twice": self.is_duplicated,
            "cut without warning": self.is_unwarned,
        }
        return tuple(name for name, is_so in defects.items() if is_so)


def decisions_of(events: Sequence[StreamEvent]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the delegation decisions in the events, in order, each with its reason codes."""
    return tuple(
        (str(event.data["decision"]), tuple(event.data["reason_codes"]))
        for event in events
        if event.name == "status" and event.data.get("state") == "delegation"
    )


def differs(live: Sequence[StreamEvent], again: Sequence[StreamEvent]) -> bool:
    """Return whether a replay differs from the live stream in any byte, up to the last event that was
    received live.
    """
    return [event.frame for event in live] != [event.frame for event in again[: len(live)]]


def terminal_events(events: Sequence[StreamEvent]) -> int:
    return sum(event.name in LAST_EVENTS for event in events)
