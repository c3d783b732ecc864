"""Tests for the trace of a finished run and its sub-agents, built from stored events without any text."""

from datetime import UTC, datetime, timedelta

from shared.answering.inline import run_to_end
from shared.answering.policy_models import BudgetAllocation, DelegationPolicyOutput
from shared.answering.run_end import cancel_run
from shared.answering.runs import begin_run, close_dead_run
from shared.answering.subagent_models import Delegation, SubagentTask
from shared.answering.trace import record_end
from shared.platform import tracing
from shared.platform.errors import DependencyError
from shared.platform.telemetry import pseudonym
from shared.platform.tracing import TraceLink, link_below
from shared.runs.models import ChatRequest, RunRecord
from shared.wiring import Services
from tests.fakes.services import fake_services, fake_settings
from tests.fakes.stores import InMemoryRunStore
from tests.tracing_fixture import Recorded, recorded, start_recording
from tests.unit.answering.test_delegating import finding
from tests.unit.subagents.lines import keep_delegation
from tests.world import ANNA, corpus_services

__all__ = ["recorded", "start_recording"]

QUESTION = "At what pressure does the pump run?"


class UnreachableRuns(InMemoryRunStore):
    async def get(self, run_id: str) -> RunRecord | None:
        raise DependencyError("No connection.")


def link_of(run_id: str) -> TraceLink:
    """Return the link that places a run below the current span."""
    link = link_below(tracing.traceparent(), run_id, datetime.now(UTC))
    assert link is not None
    return link


async def answered(services: Services) -> tuple[str, TraceLink]:
    """Return a finished run and its link below the span `request`."""
    with tracing.root("request", "server"):
        request = await begin_run(ChatRequest(question=QUESTION, deep=True), ANNA, services)
        link = link_of(request.run_id)
        await run_to_end(request.run_id, services, children=finding("The pump runs at 99 bar."))
    return request.run_id, link


async def test_a_run_and_its_sub_agents_are_spans_without_a_word_of_question_or_answer(
    recorded: Recorded,
) -> None:
    services = await corpus_services(settings=fake_settings())
    run_id, link = await answered(services)
    below = link_below(link.own, f"{run_id}:s002c0", datetime.now(UTC))
    assert below is not None
    with tracing.span("perform_step sub_agent_turn", parent=below.own):
        pass
    await record_end(run_id, link, services, services.runs)
    assert recorded.parent_of("answer_question") == "request"
    (child,) = (name for name in recorded.names if name.startswith("run_sub_agent "))
    assert recorded.parent_of(child) == "answer_question"
    assert recorded.parent_of("perform_step sub_agent_turn") == child
    attributes = recorded.attributes("answer_question")
    assert attributes["groundwork.status"] == "completed"
    assert attributes["user_id"] == pseudonym(ANNA.user_id)
    assert recorded.attributes(child)["groundwork.findings"] == 1
    spans_text = str([(span.name, dict(span.attributes or {}), span.events) for span in recorded.all])
    assert not any(word in spans_text for word in ("pressure", "pump", "bar", f"'{ANNA.user_id}'"))


async def test_the_inline_driver_is_in_the_trace_of_who_runs_it(recorded: Recorded) -> None:
    await answered(await corpus_services())
    assert recorded.parent_of("perform_step prepare") == "request"
    assert "perform_step commit_answer" in recorded.names


async def test_a_run_that_died_is_a_failed_span(recorded: Recorded) -> None:
    services = fake_services()
    with tracing.root("request", "server"):
        request = await begin_run(ChatRequest(question=QUESTION), ANNA, services)
        link = link_of(request.run_id)
    await close_dead_run(request.run_id, "The run was stopped.", services)
    await record_end(request.run_id, link, services, services.runs)
    assert recorded.attributes("answer_question")["error.type"] == "InternalError"
    assert not recorded.one("answer_question").status.is_ok


async def test_a_run_that_was_cancelled_is_none_that_failed(recorded: Recorded) -> None:
    services = fake_services()
    with tracing.root("request", "server"):
        request = await begin_run(ChatRequest(question=QUESTION), ANNA, services)
        link = link_of(request.run_id)
    await cancel_run(request.run_id, services)
    task = SubagentTask(
        child_id="c0",
        run_id=request.run_id,
        step=3,
        index=0,
        profile="comparator",
        question="SECRET",
        tools=(),
        budget=BudgetAllocation(),
        deadline=datetime.now(UTC) + timedelta(seconds=15),
    )
    decided = DelegationPolicyOutput(decision="delegate", reason_codes=("INTENT_COMPARE_DOCS",))
    now = datetime.now(UTC)
    delegation = Delegation(step=3, decided=decided, tasks=(task,), decided_at=now, language="en")
    await keep_delegation(services, request.run_id, delegation)
    await record_end(request.run_id, link, services, services.runs)
    for name in ("answer_question", "run_sub_agent comparator"):
        assert recorded.attributes(name)["groundwork.status"] == "cancelled"
        assert "error.type" not in recorded.attributes(name)


async def test_what_cannot_be_read_costs_the_trace_and_nothing_else(recorded: Recorded) -> None:
    with tracing.root("request", "server"):
        link = link_of("run-1")
    services = fake_services(runs=UnreachableRuns())
    await record_end("run-1", link, services, services.runs)
    assert recorded.names == ["request"]


async def test_without_a_receiver_nothing_is_read() -> None:
    link = link_below("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "r", datetime.now(UTC))
    assert link is not None
    services = fake_services(runs=UnreachableRuns())
    await record_end("run-1", link, services, services.runs)
