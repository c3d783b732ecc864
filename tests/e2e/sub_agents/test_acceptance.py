"""The eight acceptance cases of delegation (docs/internals/delegation.md) through the whole stack.

Each case checks the delegation event and the views that readers see.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from evals.budgets.children import Instances
from evals.budgets.following import Followed
from local.run_all.stack import LocalStack
from tests.e2e.sub_agents.hosts import (
    MODEL,
    SLACK_S,
    answer_of,
    ask,
    configured,
    decision_of,
    run_of,
    spoil_control,
    statuses,
    tasks_of,
    warnings_of,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

FACT = "What is the maximum operating pressure of the Heron 400?"
SUMMARY = "Summarise the Heron 400 installation guide."
COMPARISON = "Compare the revenue in the annual report 2023 and the annual report 2024."
AMBIGUOUS = "What do we know about noise, gloves and hearing protection?"
REPORTS = {"annual-report-2023.pdf", "annual-report-2024.pdf"}


@pytest.fixture(scope="module")
def usual(stack: LocalStack) -> Iterator[LocalStack]:
    """Yield the stack with the default settings, except for longer timeouts."""
    with configured(stack) as running:
        yield running


def files_of(answer: dict[str, Any]) -> set[str]:
    return {citation["filename"] for citation in answer["citations"]}


def assert_delegated(stack: LocalStack, followed: Followed, profile: str) -> dict[str, Any]:
    """Check the event, the children and the views of a successful delegation, and return the answer."""
    decision = decision_of(followed)
    assert (decision["event"], decision["request_id"]) == ("delegation_policy_decision", followed.run_id)
    assert (decision["decision"], decision["selected_profile"]) == ("delegate", profile)
    assert 0 < decision["latency_budget_ms"] <= 30_000
    assert 0 < decision["token_budget"] <= 30_000
    answer = answer_of(followed)
    views = answer["sub_agents"]
    assert {(view["profile"], view["status"]) for view in views} == {(profile, "done")}
    assert all(view["badge"] and view["reasons"] for view in views)
    assert {view["child_id"] for view in views} == {child.child_id for child in children_of(stack, followed)}
    assert any(event.data.get("profile") == profile for event in followed.events if "child" in event.data)
    assert warnings_of(answer) == []
    return answer


def children_of(stack: LocalStack, followed: Followed) -> Any:
    """Return the run's child orchestrations, all of which must have ended."""
    instances = Instances(stack, SLACK_S)
    try:
        children = instances.wait_until_settled(followed.run_id)
    finally:
        instances.close()
    assert not any(child.outlived for child in children)
    return children


def assert_not_delegated(stack: LocalStack, followed: Followed, reason: str) -> dict[str, Any]:
    """Check that a question started no sub-agent for the given reason, and return its answer."""
    decision = decision_of(followed)
    assert decision["decision"] == "no_delegate"
    assert reason in decision["reason_codes"]
    assert (decision["selected_profile"], decision["latency_budget_ms"], decision["token_budget"]) == (
        None,
        0,
        0,
    )
    assert children_of(stack, followed) == []
    assert not statuses(followed, "sub_agent")
    answer = answer_of(followed)
    assert answer["sub_agents"] == []
    assert answer["text"].strip()
    return answer


def test_a_confident_fact_lookup_gets_no_sub_agent(usual: LocalStack) -> None:
    followed = ask(usual, FACT)
    answer = assert_not_delegated(usual, followed, "CONFIDENT_FACT_LOOKUP")
    assert "6.5 bar" in answer["text"]
    assert warnings_of(answer) == []


def test_the_summary_of_a_whole_document_gets_a_document_reader(usual: LocalStack) -> None:
    followed = ask(usual, SUMMARY)
    answer = assert_delegated(usual, followed, "doc_reader")
    assert "INTENT_DOC_SUMMARY" in decision_of(followed)["reason_codes"]
    assert files_of(answer) == {"heron-400-installation-guide.pdf"}


def test_a_comparison_across_documents_gets_a_comparator(usual: LocalStack) -> None:
    followed = ask(usual, COMPARISON)
    answer = assert_delegated(usual, followed, "comparator")
    assert "INTENT_COMPARE_DOCS" in decision_of(followed)["reason_codes"]
    assert files_of(answer) >= REPORTS
    assert {"48.2", "53.7"} <= set(answer["text"].replace("**", "").split())
    # The stored run must contain the same views of sub-agents that readers saw live.
    assert run_of(usual, followed)["answer"]["sub_agents"] == answer["sub_agents"]


def test_ambiguous_evidence_starts_no_sub_agent_by_itself(usual: LocalStack) -> None:
    followed = ask(usual, AMBIGUOUS)
    assert decision_of(followed)["decision"] == "delegate"
    assert children_of(usual, followed) == []
    assert answer_of(followed)["text"].strip()


def test_an_error_of_the_policy_is_a_safe_no(usual: LocalStack) -> None:
    ask(usual, COMPARISON)
    spoil_control(usual)
    followed = ask(usual, COMPARISON)
    answer = assert_not_delegated(usual, followed, "POLICY_EVAL_ERROR")
    assert files_of(answer) >= REPORTS


def test_ambiguous_evidence_is_a_reason_to_delegate_that_the_model_may_follow(stack: LocalStack) -> None:
    with configured(stack, CHAT_MODEL=f"{MODEL}@delegate") as running:
        followed = ask(running, AMBIGUOUS)
        children = children_of(running, followed)
    policy_reasons, model_reasons = (
        set(decision["reason_codes"]) for decision in statuses(followed, "delegation")
    )
    assert policy_reasons & {"LOW_RETRIEVAL_CONFIDENCE", "AMBIGUOUS_RETRIEVAL"}
    assert "MODEL_REQUESTED" in model_reasons
    assert [view["profile"] for view in answer_of(followed)["sub_agents"]] == ["evidence_builder"]
    assert len(children) == 1


def test_an_exhausted_budget_is_told_with_its_reason_and_ambiguity_does_not_outweigh_it(
    stack: LocalStack,
) -> None:
    with configured(stack, MAX_TOTAL_TOKENS_PER_REQUEST="8500", MAX_SUBAGENT_COST_USD="0") as poor:
        for question in (COMPARISON, AMBIGUOUS):
            followed = ask(poor, question)
            assert_not_delegated(poor, followed, "TOKEN_BUDGET_EXHAUSTED")
            assert "COST_BUDGET_EXHAUSTED" in decision_of(followed)["reason_codes"]


def test_a_disallowed_tool_is_never_in_the_scope_of_a_sub_agent(stack: LocalStack) -> None:
    restricted = {
        "SUBAGENTS_RESTRICTED_TOOLS_ONLY": "true",
        "SUBAGENTS_RESTRICTED_TOOLS": "retrieve_documents",
        "CHAT_MODEL": f"{MODEL}@toolloop,only=sub_agent",
    }
    with configured(stack, **restricted) as running:
        followed = ask(running, COMPARISON)
        decision = decision_of(followed)
        assert decision["decision"] == "delegate"
        assert "TOOLS_RESTRICTED" in decision["reason_codes"]
        tasks = tasks_of(running, followed.run_id)
    assert [task["tools"] for task in tasks] == [["retrieve_documents"]]
    used = {use["tool"] for view in answer_of(followed)["sub_agents"] for use in view["tool_calls"]}
    assert used <= {"rag_semantic_search", "read_pages"}


def test_a_child_that_is_out_of_time_leaves_a_partial_result_and_a_visible_warning(stack: LocalStack) -> None:
    # The model writes the report slowly, so that only a part has arrived at the timeout.
    slow = {"CHAT_MODEL": f"{MODEL}@tps=25,only=ComparatorReport", "SUBAGENTS_CHILD_TIMEOUT_MS": "6000"}
    with configured(stack, **slow) as running:
        followed = ask(running, COMPARISON)
        children = children_of(running, followed)
    assert len(children) == 1
    answer = answer_of(followed)
    (view,) = answer["sub_agents"]
    assert view["status"] in ("partial", "late")
    assert view["claims"] > 0
    assert files_of(answer) >= REPORTS
    (warning,) = warnings_of(answer)
    assert [one["text"] for one in statuses(followed, "warning")] == [warning]
