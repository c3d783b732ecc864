"""Sub-agents that fail too often are paused, and answers go on without them."""

import pytest

from local.run_all.stack import LocalStack
from tests.e2e.sub_agents.hosts import MODEL, answer_of, ask, configured, decision_of, warnings_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SUMMARY = "Summarise the minutes of the safety committee."
FAILURES = 10  # the circuit does not open on fewer outcomes


def test_after_failures_the_circuit_opens_and_answers_do_without(stack: LocalStack) -> None:
    broken = {
        "CHAT_MODEL": f"{MODEL}@fail=503,only=sub_agent",
        "SUBAGENTS_CHILD_RETRY_COUNT": "0",
        "SUBAGENTS_CHILD_RETRY_BACKOFF_MS": "0",
    }
    with configured(stack, **broken) as running:
        failed = [ask(running, SUMMARY) for _ in range(FAILURES)]
        assert all(decision_of(one)["decision"] == "delegate" for one in failed)
        assert all(warnings_of(answer_of(one)) for one in failed)
        paused = ask(running, SUMMARY)
    assert decision_of(paused)["decision"] == "no_delegate"
    assert "CIRCUIT_OPEN" in decision_of(paused)["reason_codes"]
    assert answer_of(paused)["citations"]
    assert warnings_of(answer_of(paused)) == []
