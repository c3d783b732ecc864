"""GET /metrics/subagents: for administrators alone; the timer takes old records away."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.durable_functions import OrchestrationRuntimeStatus
from azure.durable_functions.models import PurgeHistoryResult
from starlette.applications import Starlette

from functions import background, metrics
from shared.subagents.metrics import ChildRecord, note_decision
from shared.subagents.policy_models import DelegationPolicyOutput
from shared.wiring import Services
from tests.fakes.stores_subagents import InMemoryMetricStore
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import IngestingClient, make_app, problem_of

DELEGATE = DelegationPolicyOutput(
    decision="delegate", reason_codes=("INTENT_COMPARE_DOCS",), selected_profile="comparator"
)


@pytest.fixture
def app(durable: IngestingClient) -> Starlette:
    return make_app([metrics], durable)


async def test_only_administrators_may_ask(user: AsUser) -> None:
    for client in (user("anna"), user("anna", groups=["admin"])):
        assert problem_of(await client.get("/metrics/subagents")) == (403, "AccessDeniedError")
    assert (await user("olga", roles=["admin"]).get("/metrics/subagents")).status_code == 200


async def test_nothing_ran(user: AsUser) -> None:
    told = (await user("olga", roles=["admin"]).get("/metrics/subagents")).json()
    span = datetime.fromisoformat(told.pop("until")) - datetime.fromisoformat(told.pop("since"))
    assert span == timedelta(hours=24)
    assert told == {
        "complete": True,
        "decisions": 0,
        "delegated": 0,
        "deferred": 0,
        "profiles": [],
        "control": {
            "circuit_closed": True,
            "free": 20,
            "circuit": "closed",
            "opened_at": None,
            "outcomes": 0,
            "failures": 0,
            "active": 0,
            "waiting": 0,
            "max_active": 20,
        },
    }


async def test_what_ran_is_told_by_profile(services: Services, user: AsUser) -> None:
    now = datetime.now(UTC)
    await note_decision(services.subagent_metrics, "run", 1, DELEGATE, now)
    child = {"key": "k", "at": now, "selected": "comparator", "profile": "doc_reader", "status": "partial"}
    await services.subagent_metrics.add(
        ChildRecord(**child, timed_out=True, latency_ms=900, tokens=70, cost_usd=0.001, claims=4, proved=3)
    )
    told = (await user("olga", roles=["admin"]).get("/metrics/subagents?hours=2")).json()
    assert told["profiles"] == [
        {
            "profile": "comparator",
            "delegations": 1,
            "delegate_rate": 1.0,
            "children": 1,
            "success_rate": 1.0,
            "timeout_rate": 1.0,
            "latency_p50_ms": 900,
            "latency_p95_ms": 900,
            "tokens": 70,
            "cost_usd": 0.001,
            "claims": 4,
            "proved": 3,
            "citation_coverage": 0.75,
            "fallbacks_reduced_profile": 1,
            "fallbacks_main_agent": 0,
        }
    ]


@pytest.mark.parametrize("hours", ["0", "169", "-1", "1.5", "a", "²"])
async def test_strange_hours_are_refused(hours: str, user: AsUser) -> None:
    answer = await user("olga", roles=["admin"]).get("/metrics/subagents", params={"hours": hours})
    assert problem_of(answer) == (400, "InvalidRequestError")


class PurgingClient:
    """Of the client of Durable Functions: what takes histories away."""

    def __init__(self) -> None:
        self.purged: list[tuple[datetime, datetime, list[OrchestrationRuntimeStatus]]] = []

    async def purge_instance_history_by(
        self, since: datetime, before: datetime, statuses: list[OrchestrationRuntimeStatus]
    ) -> PurgeHistoryResult:
        self.purged.append((since, before, statuses))
        if len(self.purged) == 3:
            raise TimeoutError  # as the client does after 240 s
        return PurgeHistoryResult(instancesDeleted=3)


async def test_the_timer_takes_old_records_away(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ready() -> Services:
        return services

    monkeypatch.setattr(background, "ready_services", ready)
    now = datetime.now(UTC)
    for days in (0, 31, 32):
        await note_decision(services.subagent_metrics, "run", days, DELEGATE, now - timedelta(days=days))
    timer: Any = next(
        builder._function.get_user_function()
        for builder in background.blueprint._function_builders
        if builder._function.get_user_function().__name__ == "keep_tidy"
    )
    client = PurgingClient()
    await timer.client_function(timer=None, client=client)
    slices = [(since, before) for since, before, _ in client.purged]
    kept = now - timedelta(days=services.settings.conversations.run_retention_days)
    assert timedelta() <= slices[0][1] - kept < timedelta(hours=1)
    assert slices[0][1] - slices[0][0] == timedelta(hours=1)
    assert [since for since, _ in slices[:-1]] == [before for _, before in slices[1:]]  # none is left out
    assert slices[-1][0].year == 2020
    assert len(slices) < 20
    statuses = client.purged[0][2]
    assert {status.value for status in statuses} == {"Completed", "Failed", "Terminated", "Canceled"}
    assert isinstance(services.subagent_metrics, InMemoryMetricStore)
    (left,) = services.subagent_metrics.records.values()
    assert left.at == now
