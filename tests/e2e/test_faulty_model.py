"""A model that fails, drips or stops half-way: the run still ends with something to read."""

from datetime import datetime

import pytest

from local.run_all.stack import LocalStack
from samples.questions import FIRST_QUESTION
from tests.e2e.sub_agents.hosts import MODEL, SLACK_S, answer_of, ask, configured, run_of, statuses

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

HURRIED = {
    "SUBAGENTS_RESERVE_LATENCY_MS": "1000",
    "SUBAGENTS_ENABLED": "false",  # tests/e2e/sub_agents/test_budgets.py tests sub-agents
}
QUOTED = "These passages of the documents fit the question best:"


@pytest.mark.parametrize(
    ("knobs", "question", "budget_s", "begins_with", "is_cut"),
    [
        ("stall=90,only=answer", "Summarise the Heron 400 manual.", 16, "", True),
        pytest.param(
            *("fail=429,retry_after=2", FIRST_QUESTION.text, 10, QUOTED, False), marks=pytest.mark.nightly
        ),
        pytest.param(*("stall=3", FIRST_QUESTION.text, 10, QUOTED, False), marks=pytest.mark.nightly),
    ],
)
def test_a_question_is_answered_in_its_time_whatever_the_model_does(
    stack: LocalStack, knobs: str, question: str, budget_s: int, begins_with: str, is_cut: bool
) -> None:
    settings = {**HURRIED, "CHAT_MODEL": f"{MODEL}@{knobs}", "MAX_TOTAL_LATENCY_MS": str(budget_s * 1000)}
    with configured(stack, **settings) as running:
        followed = ask(running, question)
        run = run_of(running, followed)
    answer = answer_of(followed)
    assert answer["text"].startswith(begins_with)
    assert (answer["truncated"], answer["abstained"]) == (is_cut, False)
    assert all(citation["verified"] for citation in answer["citations"])
    assert answer["citations"]
    assert [warning["text"] for warning in statuses(followed, "warning")] == answer["warnings"] != []
    assert answer["warnings"][-1] in answer["text"]
    took = datetime.fromisoformat(run["finished_at"]) - datetime.fromisoformat(run["created_at"])
    assert took.total_seconds() < budget_s + SLACK_S
