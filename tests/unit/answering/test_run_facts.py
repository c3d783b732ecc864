"""Tests for the metrics about a run's sub-agents: each is counted once, without personal data."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from shared.answering.children import Child
from shared.answering.policy import decision_event
from shared.answering.policy_models import DelegationPolicyOutput
from shared.answering.run_facts import child_facts, decisions_of
from shared.answering.subagent_models import Delegation, Finding, FoundProof, SubagentState, SubagentTask
from shared.quality import recording
from shared.quality.models import AnswerRecord, DecisionFacts
from shared.runs.events import DelegationStatus
from shared.runs.models import ChildStatus
from tests.fakes.services import fake_services, fake_settings
from tests.metrics_fixture import points, reader

__all__ = ["reader"]

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
DELEGATE = DelegationPolicyOutput(
    decision="delegate", reason_codes=("INTENT_COMPARE_DOCS",), selected_profile="comparator"
)
PROVED = Finding(kind="similarity", text="SECRET", proofs=(FoundProof(quote="SECRET", doc_id="d"),))
UNPROVED = Finding(kind="difference", text="SECRET")


def delegation(count: int = 1) -> Delegation:
    tasks = tuple(
        SubagentTask(
            child_id=f"run-of-anna:s004c{index}",
            run_id="run-of-anna",
            step=4,
            index=index,
            profile="comparator",
            question="SECRET",
            tools=("retrieve_documents",),
            budget=DELEGATE.budget_allocation,
            deadline=NOW + timedelta(seconds=15),
        )
        for index in range(count)
    )
    return Delegation(step=4, decided=DELEGATE, tasks=tasks, decided_at=NOW, language="en")


def ended(
    of: Delegation, index: int = 0, status: ChildStatus = "done", **values: Any
) -> tuple[Child, ChildStatus]:
    usual = {
        "child_id": of.tasks[index].child_id,
        "profile": "comparator",
        "started_at": NOW + timedelta(seconds=1),
        "ended_at": NOW + timedelta(seconds=3),
        "tokens": 700,
        "cost_usd": 0.01,
        "findings": (PROVED, UNPROVED),
    }
    return Child(of.tasks[index], SubagentState(**{**usual, **values})), status


def event(step: int, output: DelegationPolicyOutput = DELEGATE) -> DelegationStatus:
    return decision_event("run-of-anna", output, fake_settings()).model_copy(update={"step": step})


def test_a_childs_end_has_its_numbers() -> None:
    facts = child_facts(*ended(delegation()))
    assert (facts.selected, facts.profile, facts.status, facts.timed_out) == (
        "comparator",
        "comparator",
        "done",
        False,
    )
    assert (facts.latency_ms, facts.tokens, facts.cost_usd) == (2000, 700, 0.01)
    assert (facts.claims, facts.proved) == (2, 1)


@pytest.mark.parametrize(
    ("status", "values", "latency_ms", "timed_out"),
    [
        ("late", {"ended_at": None}, 14_000, True),
        ("partial", {"warnings": ("TIME_OUT",)}, 2_000, True),
        ("partial", {"warnings": ("TOKENS_SPENT",)}, 2_000, False),
        ("failed", {"started_at": None, "ended_at": None}, None, False),
    ],
)
def test_time_that_ran_out_and_children_that_never_began(
    status: ChildStatus, values: dict[str, Any], latency_ms: int | None, timed_out: bool
) -> None:
    facts = child_facts(*ended(delegation(), status=status, **values))
    assert (facts.latency_ms, facts.timed_out) == (latency_ms, timed_out)


def test_a_child_that_stored_nothing_has_facts_too() -> None:
    task = delegation().tasks[0]
    facts = child_facts(Child(task, SubagentState(child_id=task.child_id, profile=task.profile)), "late")
    assert (facts.status, facts.timed_out, facts.latency_ms, facts.claims) == ("late", True, None, 0)


def test_a_decision_repeated_after_a_crash_counts_once_and_another_of_the_same_step_too() -> None:
    advice = DelegationPolicyOutput(decision="no_delegate", reason_codes=("NO_TRIGGER",))
    decisions = decisions_of([event(4, advice), event(4, advice), event(4), event(5, advice)])
    assert [one.decision for one in decisions] == ["no_delegate", "delegate", "no_delegate"]
    assert decisions[1] == DecisionFacts(
        decision="delegate", profile="comparator", reason_codes=("INTENT_COMPARE_DOCS",)
    )


def run_record() -> AnswerRecord:
    facts = child_facts(*ended(delegation(), profile="doc_reader"))
    return AnswerRecord(
        key="k", at=NOW, outcome="answered", decisions=decisions_of([event(4)]), children=(facts,)
    )


def test_facts_hold_no_user_no_run_and_no_text() -> None:
    record_json = run_record().model_dump_json()
    assert "anna" not in record_json
    assert "SECRET" not in record_json


async def test_the_same_goes_to_opentelemetry(reader: InMemoryMetricReader) -> None:
    services = fake_services()
    for _ in range(2):  # the second pass repeats the same projection
        await recording.keep(run_record(), services.quality)
    metric_points = points(reader, recording.SUBAGENT_METER)
    assert metric_points["groundwork.subagent.decisions"] == [
        ({"decision": "delegate", "profile": "comparator"}, 1)
    ]
    assert metric_points["groundwork.subagent.ends"] == [
        ({"profile": "comparator", "status": "done", "timed_out": False, "reduced": True}, 1)
    ]
    assert metric_points["groundwork.subagent.duration"] == [({"profile": "comparator"}, 2.0)]
    assert metric_points["groundwork.subagent.tokens"] == [({"profile": "comparator"}, 700)]
    assert metric_points["groundwork.subagent.cost"] == [({"profile": "comparator"}, 0.01)]
    assert sorted(metric_points["groundwork.subagent.claims"], key=str) == [
        ({"profile": "comparator", "proved": False}, 1),
        ({"profile": "comparator", "proved": True}, 1),
    ]
