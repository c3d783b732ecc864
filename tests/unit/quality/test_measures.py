"""Tests for the quality measures: the counted records, the target and the time span of each."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.evidence.models import AnswerFigure, Citation
from shared.quality.measures import QualitySums, answer_record, quality_metrics
from shared.quality.models import AnswerRecord, Measure, OpeningRecord, QualityRecord, RatingRecord
from shared.runs.models import RunAnswer, RunRecord, WritingFacts
from shared.runs.plan import TodoItem
from shared.wiring import Services
from tests.fakes.services import fake_services

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def run(key: str = "a", **values: Any) -> AnswerRecord:
    return AnswerRecord(**{"key": key, "at": NOON, "outcome": "answered", **values})


def rating(key: str = "a", **values: Any) -> RatingRecord:
    return RatingRecord(key=key, at=NOON, **values)


def opening(key: str = "a", n: int = 1) -> OpeningRecord:
    return OpeningRecord(key=key, at=NOON, n=n)


def sums(*records: QualityRecord, project_id: str | None = None) -> QualitySums:
    quality_sums = QualitySums(project_id)
    quality_sums.add(records)
    return quality_sums


def measure(name: str, *records: QualityRecord) -> Measure:
    result: Measure = getattr(sums(*records).measures(), name)
    return result


def test_without_data_no_measure_has_a_value_and_none_is_met() -> None:
    for fields in sums().measures().model_dump().values():
        assert (fields["value"], fields["of"], fields["met"]) == (None, 0, None)
    assert set(sums().times().model_dump().values()) == {None}
    assert sums().rating_summary().average is None


@pytest.mark.parametrize(
    ("name", "records", "value", "of", "is_met"),
    [
        # Two sources opened in one answer count once. Answers without citations are not counted.
        ("click_through_rate", [run(citations=2), opening(), opening(n=2), run("b")], 1.0, 1, False),
        ("click_through_rate", [run(key, citations=1) for key in "abcd"] + [opening("b")], 0.25, 4, True),
        ("click_through_rate", [opening("of a run whose end was lost")], None, 0, None),
        ("click_through_rate", [run(citations=1, outcome="failed"), opening()], None, 0, None),
        # Only answers with available figures are counted.
        (
            "answers_with_figures",
            [run(figures_available=3, figures_shown=1), run("b", figures_available=1), run("c")],
            0.5,
            2,
            False,
        ),
        ("answers_with_figures", [run(outcome="abstained", figures_available=2)], None, 0, None),
        # A plan is complete if every item is done without asking the user. Cancelled runs are not counted.
        (
            "plan_completion",
            [
                run(plan_items=2, plan_items_done=2),
                run("b", plan_items=2, plan_items_done=1),
                run("c", plan_items=1, plan_items_done=1, asked_back=True),
                run("d", plan_items=1, outcome="failed"),
                run("e", plan_items=1, outcome="cancelled"),
                run("f"),
            ],
            0.25,
            4,
            False,
        ),
        ("clarification_rate", [run(asked_back=True), *(run(key) for key in "bcdef")], 0.1667, 6, True),
        ("clarification_rate", [run(asked_back=True), *(run(key) for key in "bcde")], 0.2, 5, False),
        (
            "tool_success",
            [run(tool_calls=19, tool_calls_succeeded=19), run("b", tool_calls=1, outcome="failed")],
            0.95,
            20,
            True,
        ),
        ("citation_accuracy", [run(citations=3, citations_verified=2), run("b")], 0.6667, 3, False),
        ("citation_accuracy", [run(citations=3, citations_verified=3)], 1.0, 3, True),
        ("abstention_rate", [run(outcome="abstained"), run("b"), run("c", outcome="failed")], 0.5, 2, None),
        ("failure_rate", [run(outcome="failed"), run("b"), run("c", outcome="cancelled")], 0.5, 2, None),
    ],
)
def test_what_a_measure_counts(
    name: str, records: list[QualityRecord], value: float | None, of: int, is_met: bool | None
) -> None:
    result = measure(name, *records)
    assert (result.value, result.of, result.met) == (value, of, is_met)


def test_the_order_of_records_does_not_matter() -> None:
    records: list[QualityRecord] = [opening(), rating(rating=4), run(citations=1)]
    assert sums(*records) == sums(*reversed(records))


def test_the_aims_are_those_that_were_promised() -> None:
    aims = {name: fields["aim"] for name, fields in sums().measures().model_dump().items()}
    assert aims == {
        "click_through_rate": 0.30,
        "answers_with_figures": 0.60,
        "plan_completion": 0.80,
        "clarification_rate": 0.20,
        "tool_success": 0.95,
        "citation_accuracy": 1.0,
        "abstention_rate": None,
        "failure_rate": None,
    }


def test_what_people_said() -> None:
    summary = sums(
        run(),
        rating("a", rating=5, reasons=("helpful",), has_comment=True),
        rating("b", rating=2, thumb="down", reasons=("wrong", "outdated")),
        rating("c", thumb="up", reasons=("helpful",)),
    ).rating_summary()
    assert (summary.rated, summary.average, summary.distribution) == (3, 3.5, (0, 1, 0, 0, 1))
    assert (summary.thumbs_up, summary.thumbs_down, summary.comments) == (1, 1, 1)
    assert summary.reasons == {"helpful": 2, "outdated": 1, "wrong": 1}


def test_one_project_alone() -> None:
    project_sums = sums(
        run("a", project_id="pumps", citations=1),
        run("b", project_id="valves", citations=1),
        rating("a", rating=1),
        rating("b", rating=5),
        opening("b"),
        project_id="pumps",
    )
    assert (project_sums.counts().runs, project_sums.rating_summary().average) == (1, 1.0)
    assert project_sums.measures().click_through_rate.value == 0.0


def test_times_are_of_answers_alone() -> None:
    times = sums(
        run("a", latency_ms=100, first_token_ms=10),
        run("b", latency_ms=300, outcome="abstained"),
        run("c", latency_ms=9000, outcome="failed"),
        run("d", asked_back=True, first_token_ms=30),
    ).times()
    assert (times.latency_p50_ms, times.latency_p95_ms) == (100, 300)
    assert (times.first_token_p50_ms, times.first_token_p95_ms) == (10, 30)


def record(**values: Any) -> RunRecord:
    usual = {
        "run_id": "r",
        "thread_id": "t",
        "owner_id": "anna",
        "question": "How high?",
        "status": "completed",
        "created_at": NOON,
        "finished_at": NOON + timedelta(milliseconds=1500),
    }
    return RunRecord.model_validate({**usual, **values})


def test_an_answer_is_recorded_in_numbers_alone() -> None:
    cited = {"doc_id": "d", "block_id": "b", "filename": "secret.pdf", "quote": "secret words", "url": "/x"}
    figure = AnswerFigure(block_id="f", doc_id="d", filename="secret.pdf", caption="secret", path="/y")
    answer = RunAnswer(
        run_id="r",
        text="secret words",
        citations=(
            Citation(n=1, verified=True, **cited),
            Citation(n=2, verified=False, **cited),
            Citation(n=3, verified=False, kind="table", **cited),
        ),
        figures=(figure,),
        warnings=("late",),
    )
    items = [
        TodoItem(position=number, description="secret", acceptance_criteria="", status=status)
        for number, status in ((1, "done"), (2, "failed"))
    ]
    row = answer_record(record(todo=items), answer, WritingFacts(first_token_ms=700, figures_available=3))
    assert row == run(
        "",
        plan_items=2,
        plan_items_done=1,
        figures_available=3,
        figures_shown=1,
        citations=3,
        citations_verified=2,
        latency_ms=1500,
        first_token_ms=700,
        warnings=1,
    )
    assert "secret" not in row.model_dump_json()


@pytest.mark.parametrize(
    ("values", "abstained", "outcome"),
    [
        ({}, False, "answered"),
        ({}, True, "abstained"),
        ({"status": "failed"}, None, "failed"),
        ({"status": "cancelled"}, None, "cancelled"),
        ({"status": "cancelled"}, False, "cancelled"),
    ],
)
def test_how_a_run_ended(values: dict[str, Any], abstained: bool | None, outcome: str) -> None:
    answer = None if abstained is None else RunAnswer(run_id="r", text="x", abstained=abstained)
    assert answer_record(record(**values), answer, WritingFacts()).outcome == outcome


def test_a_run_that_waited_for_a_person_has_no_latency() -> None:
    row = answer_record(record(ask_step=2), None, WritingFacts(first_token_ms=5))
    assert (row.asked_back, row.latency_ms, row.first_token_ms) == (True, None, 5)


NOW = datetime(2026, 3, 10, 0, 30, tzinfo=UTC)  # a span of several hours lies mostly in the previous day


async def note(services: Services, key: str, hours_ago: float) -> None:
    at = NOW - timedelta(hours=hours_ago)
    await services.quality.add(AnswerRecord(key=key, at=at, outcome="answered", citations=1))
    await services.quality.add(OpeningRecord(key=key, at=at, n=1))
    await services.quality.put_rating(RatingRecord(key=key, at=at, rating=4))


@pytest.mark.parametrize(("hours", "runs"), [(1, 1), (3, 2), (24, 3), (720, 4)])
async def test_what_is_older_does_not_count(hours: int, runs: int) -> None:
    services = fake_services()
    for key, hours_ago in (("a", 0.2), ("b", 2.9), ("c", 23.9), ("d", 700), ("e", 721)):
        await note(services, key, hours_ago)
    metrics = await quality_metrics(services.quality, NOW, hours)
    assert (metrics.answers.runs, metrics.ratings.rated, metrics.measures.click_through_rate.of) == (
        runs,
        runs,
        runs,
    )
    assert (metrics.until, metrics.since, metrics.complete) == (NOW, NOW - timedelta(hours=hours), True)


async def test_what_does_not_fit_is_what_is_old_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.quality.measures.MOST_RECORDS", 4)
    services = fake_services()
    for key, hours_ago in (("a", 0.1), ("b", 1), ("c", 49)):
        await note(services, key, hours_ago)
    metrics = await quality_metrics(services.quality, NOW, 96)
    assert (metrics.answers.runs, metrics.complete) == (2, False)
    assert metrics.since == datetime(2026, 3, 9, tzinfo=UTC)
