"""Tests for the budget evaluation: it plans the advertised cases and detects exceeded budgets."""

from dataclasses import replace

import pytest

from evals.budgets.batches import plan
from evals.budgets.children import Child
from evals.budgets.report import are_kept, promises, report
from evals.budgets.seen import Limits, Seen, Spent, decisions_of, differs, terminal_events
from local.model_server.knobs import parse_knobs
from local.run_all.api_client import StreamEvent


def event(number: int, name: str, **data: object) -> StreamEvent:
    return StreamEvent(number, name, data, f"id: {number}\nevent: {name}\ndata: {data}")


def completed(**answer: object) -> StreamEvent:
    return event(9, "complete", answer={"text": "Seven.", "abstained": False, **answer})


KEPT = Seen(
    fault="stall",
    knobs="stall=0",
    kind="fact",
    question="How many?",
    run_id="r",
    wall_ms=24_000.0,
    limits=Limits(),
    last_event=completed(),
    spent=Spent(tokens=20_000, largest_call=3_000, calls=4),
)
VIEW = {"tokens": 7_000, "cost_usd": 0.02}


def test_a_plan_has_as_many_runs_as_were_asked_for_and_is_the_same_again() -> None:
    batches = plan(23, seed=7, size=5)
    assert sum(len(batch.questions) for batch in batches) == 23
    assert batches == plan(23, seed=7, size=5)
    assert batches != plan(23, seed=8, size=5)


def test_the_model_server_knows_every_fault_that_is_planned() -> None:
    for batch in plan(1000, seed=2, size=2):
        parse_knobs(batch.knobs)


@pytest.mark.parametrize(
    ("wall_ms", "is_over"),
    [(25_000.0, False), (25_750.0, False), (25_750.1, True), (None, True)],
)
def test_a_run_may_take_its_budget_and_the_epsilon(wall_ms: float | None, is_over: bool) -> None:
    run = replace(KEPT, wall_ms=wall_ms)
    assert run.is_over_budget is is_over


@pytest.mark.parametrize(
    ("change", "defect"),
    [
        ({"last_event": None}, "stuck"),
        ({"orchestration_open": True}, "stuck"),
        ({"children": (Child("c", 0.0, "Running", None),)}, "children alive"),
        ({"children": (Child("c", 0.0, "Terminated", 1.01),)}, "children alive"),
        ({"spent": Spent(27_001, 3_000, 4)}, "tokens over"),
        ({"views": ({"tokens": 11_001, "cost_usd": 0.0},)}, "tokens over"),
        ({"views": ({"tokens": 7_000, "cost_usd": 0.06},)}, "tokens over"),
        ({"views": (VIEW, VIEW, VIEW, VIEW, VIEW)}, "tokens over"),
        ({"last_event": event(9, "error", type="ModelError")}, "unanswered"),
        ({"last_event": completed(text=" ")}, "unanswered"),
        ({"terminal_events": 2}, "ended twice"),
        ({"replay_differs": True}, "ended twice"),
        ({"last_event": completed(truncated=True)}, "cut without warning"),
    ],
)
def test_what_breaks_a_promise_is_seen(change: dict[str, object], defect: str) -> None:
    run = replace(KEPT, **change)  # type: ignore[arg-type]
    assert defect in run.defects
    assert not are_kept(promises([KEPT, run]))


def test_a_run_that_keeps_all_promises_has_no_defect() -> None:
    in_time = Child("c", 0.0, "Completed", -3.0)
    just_over = replace(KEPT, spent=Spent(26_900, 3_000, 4), children=(in_time,), views=(VIEW, VIEW))
    for run in (KEPT, just_over, replace(KEPT, last_event=completed(truncated=True, warnings=["Cut."]))):
        assert run.defects == ()
    assert are_kept(promises([KEPT, just_over]))


def test_side_by_side_the_servers_largest_call_is_what_a_sub_agent_may_be_over_by() -> None:
    just_over = replace(KEPT, spent=None, views=({"tokens": 10_900, "cost_usd": 0.0},), largest_seen=3_000)
    assert just_over.defects == ()
    assert replace(just_over, largest_seen=2_800).defects == ("tokens over",)


@pytest.mark.parametrize(
    ("last", "outcome"),
    [
        (completed(), "answer"),
        (completed(warnings=["Time was up."]), "partial answer with warning"),
        (completed(abstained=True, warnings=["Time was up."]), "abstention"),
        (event(9, "error", type="SearchError"), "error"),
        (None, "none"),
    ],
)
def test_outcomes_are_what_the_reader_has(last: StreamEvent | None, outcome: str) -> None:
    assert replace(KEPT, last_event=last).outcome == outcome


def test_a_report_counts_runs_by_fault_and_keeps_no_text_of_an_answer() -> None:
    summary = report([KEPT, replace(KEPT, fault="drip", wall_ms=27_000.0)])
    assert summary["faults"]["drip"]["broken"] == 1
    assert summary["faults"]["stall"]["broken"] == 0
    assert summary["worst_overrun_ms"] == 2000.0
    assert summary["overrun_histogram_ms"]["<= 0"] == 1
    assert summary["overrun_histogram_ms"]["<= 2000"] == 1
    assert "Seven." not in str(summary)


def test_decisions_ends_and_differences_are_read_from_events() -> None:
    decided = event(2, "status", state="delegation", decision="delegate", reason_codes=["MULTI_DOCUMENT"])
    live = [event(1, "status", state="accepted"), decided, completed()]
    assert decisions_of(live) == (("delegate", ("MULTI_DOCUMENT",)),)
    assert terminal_events([*live, completed()]) == 2
    assert not differs(live, [*live, completed()])
    assert differs(live, [live[0], completed()])
