"""A stack that answers batches of questions, and the observation of each run from outside the app."""

import contextlib
import http.client
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx

from evals.budgets.batches import Batch
from evals.budgets.children import GRACE_S, Instances
from evals.budgets.following import Caller, Followed
from evals.budgets.questions import Question
from evals.budgets.seen import EPSILON_MS, Limits, Seen, Spent, decisions_of, differs, terminal_events
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import StackError
from samples.acl import ANNA

CHILD_TASKS = frozenset({"sub_agent", "DocReaderReport", "ComparatorReport", "EvidenceReport", "WebReport"})
# Seconds beyond the time budget after which a run counts as stuck.
GIVE_UP_S = 40.0
# Time for an orchestration to end after its last event, because the durable loops poll.
SETTLE_S = 20.0
CONTRACT = {
    "MAX_TOTAL_LATENCY_MS": 25_000,
    "MIN_REMAINING_LATENCY_TO_DELEGATE_MS": 12_000,
    "SUBAGENTS_CHILD_TIMEOUT_MS": 15_000,
    "SUBAGENTS_RESERVE_LATENCY_MS": 5_000,
    "SUBAGENTS_CHILD_MIN_LATENCY_MS": 4_000,
}
# Disables the circuit breaker. An open one would prevent sub-agents in all later runs.
NO_BREAK = {
    # Token and cost budgets that are so low that ordinary questions exhaust them.
    "BUDGET_PRESET": "tight",
    "CIRCUIT_BREAKER_FAILURE_RATE_THRESHOLD": "1",
    "CIRCUIT_BREAKER_WINDOW_REQUESTS": "1000",
    "CIRCUIT_BREAKER_COOLDOWN_SECONDS": "1",
}
# The samples are so short that comparing or summarising them needs no sub-agent by default.
ALL_DELEGATE = {"WHOLE_DOCUMENTS_TOKENS": "0"}


def latency_settings(budget_ms: int) -> dict[str, str]:
    """Return the settings for all time limits, scaled to a total budget in the proportions of CONTRACT."""
    share = budget_ms / CONTRACT["MAX_TOTAL_LATENCY_MS"]
    return {name: str(round(milliseconds * share)) for name, milliseconds in CONTRACT.items()}


@dataclass(frozen=True)
class Lane:
    """A running stack that answers up to `at_once` questions concurrently.

    Tokens are counted per run only if questions are asked one at a time.

    Attributes:
        epsilon_ms, child_grace_s: allowed overrun of a run's budget and of a child's deadline; larger than
            promised on a machine known to be slow.
    """

    stack: LocalStack
    budget_ms: int
    at_once: int = 1
    epsilon_ms: float = EPSILON_MS
    child_grace_s: float = GRACE_S

    def run(self, batch: Batch) -> Iterator[Seen]:
        """Start the host with the batch's model and settings, ask the batch's questions, and yield an
        observation of each run.

        Raises:
            StackError: if the model server rejects a knob.
        """
        self._check_knobs(batch.model)
        settings = {**NO_BREAK, **ALL_DELEGATE, **latency_settings(self.budget_ms), **batch.settings}
        self.stack.kill_host()
        self.stack.start_host({**settings, "CHAT_MODEL": batch.model})
        caller = Caller(lambda: self.stack.ports.http, self.stack.token(ANNA))
        instances = Instances(self.stack, self.child_grace_s)
        limits = Limits(
            latency_ms=self.budget_ms,
            tokens=int(settings["MAX_TOTAL_TOKENS_PER_REQUEST"]),
            child_tokens=int(settings["MAX_CHILD_TOKENS"]),
            epsilon_ms=self.epsilon_ms,
        )
        asking = Asking(self, batch, limits, caller, instances)
        with contextlib.closing(instances), ThreadPoolExecutor(self.at_once) as pool:
            yield from pool.map(asking.ask, batch.questions)

    def statistics(self) -> dict[str, Any]:
        """Return the counters of the model server."""
        address = f"http://127.0.0.1:{self.stack.ports.model}/v1/stats"
        headers = {"Authorization": f"Bearer {self.stack.secrets.model_key}"}
        statistics: dict[str, Any] = httpx.get(address, headers=headers, timeout=60).raise_for_status().json()
        return statistics

    def _check_knobs(self, model: str) -> None:
        """Raise an error if the model server rejects a knob. Otherwise, a misspelt fault would silently never
        occur.
        """
        headers = {"Authorization": f"Bearer {self.stack.secrets.model_key}"}
        address = f"http://127.0.0.1:{self.stack.ports.model}/v1/models/{model}"
        answered = httpx.get(address, headers=headers, timeout=60)
        if answered.status_code != 200:
            raise StackError(f"The model server rejects the model name {model}: {answered.text[:300]}")


@dataclass(frozen=True)
class Asking:
    """A batch of questions in progress, with the clients that observe its runs."""

    lane: Lane
    batch: Batch
    limits: Limits
    caller: Caller
    instances: Instances

    def ask(self, question: Question) -> Seen:
        """Ask a question, follow the run to its end, and return the observation."""
        before = self.lane.statistics() if self.lane.at_once == 1 else None
        try:
            followed = self.caller.ask(question.text, self.lane.budget_ms / 1000 + GIVE_UP_S)
        except (OSError, http.client.HTTPException) as refused:
            self.lane.stack.check()
            return _refusal(self, question, str(refused))
        if followed.last is None:
            self.caller.call("POST", f"/api/runs/{followed.run_id}/cancel")
        return observe(self, question, followed, before)


def observe(asking: Asking, question: Question, followed: Followed, before: Mapping[str, Any] | None) -> Seen:
    """Return the observation of a run whose stream has ended. `before` contains the model server's counters
    before the run, or None if they can't be attributed to it.
    """
    children = asking.instances.wait_until_settled(followed.run_id)
    is_open = _stays_open(asking.instances, followed.run_id)
    again = asking.caller.replay(followed.run_id)
    status, view = asking.caller.call("GET", f"/api/runs/{followed.run_id}")
    after = asking.lane.statistics()
    ended = followed.ended
    return Seen(
        fault=asking.batch.fault,
        knobs=asking.batch.knobs,
        kind=question.kind,
        question=question.text,
        run_id=followed.run_id,
        wall_ms=None if ended is None else round((ended - followed.began) * 1000, 1),
        limits=asking.limits,
        last_event=followed.last,
        terminal_events=terminal_events(again),
        replay_differs=followed.last is not None and differs(followed.events, again),
        orchestration_open=is_open,
        decisions=decisions_of(followed.events),
        children=tuple(children),
        views=_views(view) if status == 200 else (),
        spent=None if before is None else _spent(before, after),
        largest_seen=_largest(after["calls"]["latest"]),
        load=os.getloadavg()[0],
        reconnects=followed.reconnects,
    )


def _refusal(asking: Asking, question: Question, why: str) -> Seen:
    """Return the observation of a question that the app refused. It counts as a run that never ended."""
    return Seen(
        fault=asking.batch.fault,
        knobs=asking.batch.knobs,
        kind=question.kind,
        question=question.text,
        run_id=f"refused: {why}",
        wall_ms=None,
        limits=asking.limits,
        last_event=None,
        load=os.getloadavg()[0],
    )


def _stays_open(instances: Instances, run_id: str) -> bool:
    give_up = time.monotonic() + SETTLE_S
    while instances.is_open(run_id):
        if time.monotonic() > give_up:
            return True
        time.sleep(0.1)
    return False


def _views(view: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    return tuple((view.get("answer") or {}).get("sub_agents") or view.get("sub_agents") or ())


def _spent(before: Mapping[str, Any], after: Mapping[str, Any]) -> Spent:
    """Return the tokens and calls counted between two readings of the model server's counters. They aren't
    reset, because that would restart the injected faults.
    """
    calls = after["calls"]["count"] - before["calls"]["count"]
    latest = after["calls"]["latest"][-calls:] if calls else []
    by_children = [prompt + completion for task, prompt, completion in latest if task in CHILD_TASKS]
    return Spent(
        tokens=sum(prompt + completion for _, prompt, completion in latest),
        largest_call=_largest(latest),
        calls=after["requests"]["chat"] - before["requests"]["chat"],
        by_children=sum(by_children),
    )


def _largest(calls: Sequence[tuple[str, int, int]]) -> int:
    """Return the number of tokens in the largest call, including its prompt and its reply."""
    return max((prompt + completion for _, prompt, completion in calls), default=0)
