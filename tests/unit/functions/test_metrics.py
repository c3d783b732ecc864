"""Tests for GET /metrics/subagents, which only administrators may read."""

from datetime import UTC, datetime, timedelta

import pytest
from starlette.types import ASGIApp

from shared.answering.control_state import ControlState
from shared.platform.errors import DependencyError
from shared.quality.models import AnswerRecord, ChildFacts, DecisionFacts
from shared.wiring import Services
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import IngestingClient, make_app, problem_of

DELEGATE = DecisionFacts(decision="delegate", reason_codes=("INTENT_COMPARE_DOCS",), profile="comparator")


@pytest.fixture
def app(durable: IngestingClient) -> ASGIApp:
    return make_app(durable)


async def test_only_administrators_may_ask(user: AsUser) -> None:
    for client in (user("anna"), user("anna", groups=["admin"])):
        assert problem_of(await client.get("/metrics/subagents")) == (403, "AccessDeniedError")
    assert (await user("olga", roles=["admin"]).get("/metrics/subagents")).status_code == 200


async def test_nothing_ran(user: AsUser) -> None:
    metrics = (await user("olga", roles=["admin"]).get("/metrics/subagents")).json()
    span = datetime.fromisoformat(metrics.pop("until")) - datetime.fromisoformat(metrics.pop("since"))
    assert span == timedelta(hours=24)
    assert metrics == {
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
    child = ChildFacts(
        selected="comparator",
        profile="doc_reader",
        status="partial",
        timed_out=True,
        latency_ms=900,
        tokens=70,
        cost_usd=0.001,
        claims=4,
        proved=3,
    )
    for key, hours in (("new", 0), ("old", 3)):
        await services.quality.add(
            AnswerRecord(
                key=key,
                at=datetime.now(UTC) - timedelta(hours=hours, seconds=1),
                outcome="answered",
                decisions=(DELEGATE,),
                children=(child,),
            )
        )
    metrics = (await user("olga", roles=["admin"]).get("/metrics/subagents?hours=2")).json()
    assert metrics["profiles"] == [
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


async def test_a_circuit_that_cannot_be_read_does_not_hide_the_rest(
    services: Services, user: AsUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreachable() -> ControlState:
        raise DependencyError("No connection to the table storage.")

    monkeypatch.setattr(services.subagent_control, "read", unreachable)
    answer = await user("olga", roles=["admin"]).get("/metrics/subagents")
    assert (answer.status_code, answer.json()["control"]) == (200, None)


@pytest.mark.parametrize("hours", ["0", "169", "-1", "1.5", "a", "²"])
async def test_strange_hours_are_refused(hours: str, user: AsUser) -> None:
    answer = await user("olga", roles=["admin"]).get("/metrics/subagents", params={"hours": hours})
    assert problem_of(answer) == (400, "InvalidRequestError")
