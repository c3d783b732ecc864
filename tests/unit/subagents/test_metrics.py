"""What is noted of decisions and sub-agents: once, whatever fails, and naming nobody."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from shared.answering import metrics
from shared.answering.children import Child
from shared.answering.control import ControlState
from shared.answering.metrics import (
    ChildRecord,
    MetricRecord,
    note_decision,
    note_ends,
    purge_old_metrics,
    subagent_metrics,
)
from shared.answering.policy_models import DelegationPolicyOutput
from shared.answering.subagent_models import Delegation, Finding, FoundProof, SubagentState, SubagentTask
from shared.platform.errors import DependencyError
from shared.runs.models import ChildStatus
from shared.wiring import Services
from tests.fakes.services import fake_services, fake_settings
from tests.fakes.stores_subagents import InMemoryControlStore, InMemoryMetricStore
from tests.metrics_fixture import points, reader

__all__ = ["reader"]

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
DELEGATE = DelegationPolicyOutput(
    decision="delegate", reason_codes=("INTENT_COMPARE_DOCS",), selected_profile="comparator"
)
PROVED = Finding(kind="similarity", text="SECRET", proofs=(FoundProof(quote="SECRET", doc_id="d"),))
UNPROVED = Finding(kind="difference", text="SECRET")


class BrokenMetricStore(InMemoryMetricStore):
    """Out of reach."""

    async def add(self, record: MetricRecord) -> bool:
        raise DependencyError("No connection to the table storage.")


class SlowMetricStore(InMemoryMetricStore):
    """Never done."""

    async def add(self, record: MetricRecord) -> bool:
        await asyncio.sleep(3600)
        return True


class BrokenControlStore(InMemoryControlStore):
    """Out of reach."""

    async def read(self) -> ControlState:
        raise DependencyError("No connection to the table storage.")


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


def only(services: Services) -> ChildRecord:
    store = services.subagent_metrics
    assert isinstance(store, InMemoryMetricStore)
    (record,) = store.records.values()
    assert isinstance(record, ChildRecord)
    return record


async def test_a_childs_end_is_noted_with_its_numbers() -> None:
    services, made = fake_services(), delegation()
    await note_ends(services.subagent_metrics, made, [ended(made)])
    noted = only(services)
    assert (noted.selected, noted.profile, noted.status, noted.timed_out) == (
        "comparator",
        "comparator",
        "done",
        False,
    )
    assert (noted.latency_ms, noted.tokens, noted.cost_usd) == (2000, 700, 0.01)
    assert (noted.claims, noted.proved) == (2, 1)


@pytest.mark.parametrize(
    ("status", "values", "latency_ms", "timed_out"),
    [
        ("late", {"ended_at": None}, 14_000, True),
        ("partial", {"warnings": ("TIME_OUT",)}, 2_000, True),
        ("partial", {"warnings": ("TOKENS_SPENT",)}, 2_000, False),
        ("failed", {"started_at": None, "ended_at": None}, None, False),
    ],
)
async def test_time_that_ran_out_and_children_that_never_began(
    status: ChildStatus, values: dict[str, Any], latency_ms: int | None, timed_out: bool
) -> None:
    services, made = fake_services(), delegation()
    await note_ends(services.subagent_metrics, made, [ended(made, status=status, **values)])
    assert (only(services).latency_ms, only(services).timed_out) == (latency_ms, timed_out)


async def test_a_child_that_stored_nothing_is_noted_too() -> None:
    services, made = fake_services(), delegation()
    task = made.tasks[0]
    silent = Child(task, SubagentState(child_id=task.child_id, profile=task.profile))
    await note_ends(services.subagent_metrics, made, [(silent, "late")])
    noted = only(services)
    assert (noted.status, noted.timed_out, noted.latency_ms, noted.claims) == ("late", True, None, 0)


async def test_what_is_noted_twice_counts_once() -> None:
    services, made = fake_services(), delegation(2)
    for _ in range(2):
        await note_decision(services.subagent_metrics, "run-of-anna", 4, DELEGATE, NOW)
        await note_ends(services.subagent_metrics, made, [ended(made, 0), ended(made, 1)])
    told = await subagent_metrics(
        services.settings, services.subagent_control, services.subagent_metrics, NOW, 1
    )
    assert (told.decisions, told.delegated, told.deferred, told.profiles[0].children) == (1, 1, 0, 2)


async def test_records_hold_no_user_no_run_and_no_text() -> None:
    store = InMemoryMetricStore()
    services, made = fake_services(subagent_metrics=store), delegation()
    await note_decision(services.subagent_metrics, "run-of-anna", 4, DELEGATE, NOW)
    await note_ends(services.subagent_metrics, made, [ended(made)])
    kept = "".join(record.model_dump_json() for record in store.records.values())
    assert "anna" not in kept
    assert "SECRET" not in kept


@pytest.mark.parametrize("store", [BrokenMetricStore(), SlowMetricStore()], ids=["broken", "slow"])
async def test_no_answer_waits_for_or_fails_with_the_records(
    store: InMemoryMetricStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_NOTE_LIMIT_S", 0.05)
    services, made = fake_services(subagent_metrics=store), delegation(2)
    began = time.monotonic()
    await note_decision(services.subagent_metrics, "run-of-anna", 4, DELEGATE, NOW)
    await note_ends(services.subagent_metrics, made, [ended(made, 0), ended(made, 1)])
    assert time.monotonic() - began < 60


async def test_only_the_time_that_is_asked_for_counts() -> None:
    services = fake_services()
    for number, age in enumerate((0, 59, 61, 119)):
        at = NOW - timedelta(minutes=age)
        await note_decision(services.subagent_metrics, "run", number, DELEGATE, at)
    assert [
        (
            await subagent_metrics(
                services.settings, services.subagent_control, services.subagent_metrics, NOW, hours
            )
        ).decisions
        for hours in (1, 2, 24)
    ] == [2, 4, 4]
    told = await subagent_metrics(
        services.settings, services.subagent_control, services.subagent_metrics, NOW, 2
    )
    assert (told.since, told.until, told.complete) == (NOW - timedelta(hours=2), NOW, True)


async def test_when_there_are_too_many_records_the_newest_are_told_and_since_when(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "MOST_RECORDS", 3)
    services = fake_services()
    for number in range(8):
        await note_decision(
            services.subagent_metrics, "run", number, DELEGATE, NOW - timedelta(minutes=30 * number)
        )
    told = await subagent_metrics(
        services.settings, services.subagent_control, services.subagent_metrics, NOW, 24
    )
    assert (told.decisions, told.complete) == (4, False)
    assert told.since == datetime(2026, 3, 1, 11, tzinfo=UTC)


async def test_nothing_ran() -> None:
    services = fake_services()
    told = await subagent_metrics(
        services.settings, services.subagent_control, services.subagent_metrics, NOW, 24
    )
    assert (told.decisions, told.profiles) == (0, ())
    assert told.control is not None
    assert (told.control.circuit, told.control.active) == ("closed", 0)


async def test_a_circuit_that_cannot_be_read_does_not_hide_the_rest() -> None:
    services = fake_services(subagent_control=BrokenControlStore())
    await note_decision(services.subagent_metrics, "run", 1, DELEGATE, NOW)
    told = await subagent_metrics(
        services.settings, services.subagent_control, services.subagent_metrics, NOW, 24
    )
    assert (told.decisions, told.control) == (1, None)


async def test_records_go_with_the_runs_they_are_from() -> None:
    services = fake_services(settings=fake_settings(run_retention_days=2))
    for days in (0, 1, 3, 4):
        await note_decision(services.subagent_metrics, "run", days, DELEGATE, NOW - timedelta(days=days))
    assert await purge_old_metrics(NOW, services.settings, services.subagent_metrics) == 2
    assert (
        await subagent_metrics(
            services.settings, services.subagent_control, services.subagent_metrics, NOW, 200
        )
    ).decisions == 2


async def test_the_same_goes_to_opentelemetry(reader: InMemoryMetricReader) -> None:
    services, made = fake_services(), delegation()
    for _ in range(2):  # the second time is a repetition of the same step
        await note_decision(services.subagent_metrics, "run-of-anna", 4, DELEGATE, NOW)
        await note_ends(services.subagent_metrics, made, [ended(made, profile="doc_reader")])
    found = points(reader, metrics.METER)
    assert found["groundwork.subagent.decisions"] == [({"decision": "delegate", "profile": "comparator"}, 1)]
    assert found["groundwork.subagent.ends"] == [
        ({"profile": "comparator", "status": "done", "timed_out": False, "reduced": True}, 1)
    ]
    assert found["groundwork.subagent.duration"] == [({"profile": "comparator"}, 2.0)]
    assert found["groundwork.subagent.tokens"] == [({"profile": "comparator"}, 700)]
    assert found["groundwork.subagent.cost"] == [({"profile": "comparator"}, 0.01)]
    assert sorted(found["groundwork.subagent.claims"], key=str) == [
        ({"profile": "comparator", "proved": False}, 1),
        ({"profile": "comparator", "proved": True}, 1),
    ]


async def test_a_store_that_fails_leaves_opentelemetry_its_numbers(reader: InMemoryMetricReader) -> None:
    await note_decision(
        fake_services(subagent_metrics=BrokenMetricStore()).subagent_metrics, "run", 1, DELEGATE, NOW
    )
    assert "groundwork.subagent.decisions" in points(reader, metrics.METER)
