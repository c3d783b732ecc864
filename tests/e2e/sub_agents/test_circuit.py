"""Sub-agents that fail too often are paused, and answers continue without them."""

from typing import Any

import pytest

from evals.budgets.following import Caller
from local.run_all.stack import LocalStack
from local.run_all.tokens import mint_token
from samples.acl import ANNA
from tests.e2e.stack_client import eventually
from tests.e2e.sub_agents.hosts import MODEL, answer_of, ask, configured, decision_of, warnings_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SUMMARY = "Summarise the minutes of the safety committee."
FAILURES = 10  # the circuit breaker opens only after at least this many outcomes


def measured(stack: LocalStack) -> dict[str, Any]:
    """Return an administrator's metrics of the last hour."""
    token = mint_token(ANNA, stack.secrets.token_secret, roles=("admin",))
    status, metrics = Caller(lambda: stack.ports.http, token).call("GET", "/api/metrics/subagents?hours=1")
    assert status == 200, metrics
    assert isinstance(metrics, dict)
    return metrics


def measured_at_last(stack: LocalStack, decisions: int) -> dict[str, Any]:
    """Return the metrics once they contain this many decisions, because the last ones are recorded with a
    delay.
    """

    def read_metrics() -> dict[str, Any] | None:
        metrics = measured(stack)
        return metrics if metrics["decisions"] >= decisions else None

    return eventually(read_metrics)


def of_reader(metrics: dict[str, Any], name: str) -> int:
    return sum(profile[name] for profile in metrics["profiles"] if profile["profile"] == "doc_reader")


def test_after_failures_the_circuit_opens_and_answers_do_without(stack: LocalStack) -> None:
    broken = {
        "CHAT_MODEL": f"{MODEL}@fail=503,only=sub_agent",
        "SUBAGENTS_CHILD_RETRY_COUNT": "0",
        "SUBAGENTS_CHILD_RETRY_BACKOFF_MS": "0",
    }
    with configured(stack, **broken) as running:
        before = measured(running)
        failed = [ask(running, SUMMARY) for _ in range(FAILURES)]
        assert all(decision_of(one)["decision"] == "delegate" for one in failed)
        assert all(warnings_of(answer_of(one)) for one in failed)
        paused = ask(running, SUMMARY)
        after = measured_at_last(running, before["decisions"] + FAILURES + 1)
    assert decision_of(paused)["decision"] == "no_delegate"
    assert "CIRCUIT_OPEN" in decision_of(paused)["reason_codes"]
    assert answer_of(paused)["citations"]
    assert warnings_of(answer_of(paused)) == []
    assert after["decisions"] == before["decisions"] + FAILURES + 1
    assert after["delegated"] == before["delegated"] + FAILURES
    for name in ("children", "fallbacks_main_agent"):
        assert of_reader(after, name) == of_reader(before, name) + FAILURES, name
    assert (before["control"]["circuit"], after["control"]["circuit"]) == ("closed", "open")
    assert (after["control"]["failures"], after["control"]["active"], after["control"]["waiting"]) == (
        10,
        0,
        0,
    )
