"""Tests for the statistics of sixty questions sent at a fixed rate."""

import pytest

from evals.pace.__main__ import PACES, QUESTIONS, conclude
from evals.real.__main__ import read_questions
from evals.real.asking import RecordedRun
from evals.real.recorder import ChatCall
from local.model_server.knobs import parse_knobs


def run(
    seconds: float, first_s: float | None, *, truncated: bool = False, degraded: bool = False
) -> RecordedRun:
    answer = {"text": "It is 6.5 bar.", "truncated": truncated}
    calls = (ChatCall({}, tokens_in=100), ChatCall({}, tokens_in=300))
    return RecordedRun("q", "", "r", "t", "completed", degraded, seconds, first_s, answer, calls)


def test_what_is_whole_cut_and_late_is_counted() -> None:
    summary = conclude([run(4.0, 2.0), run(6.0, 3.0, truncated=True), run(61.0, None, degraded=True)])
    assert (summary["questions"], summary["whole"], summary["cut"], summary["late"]) == (3, 1, 1, 1)
    assert (summary["calls_mean"], summary["tokens_in_mean"]) == (2, 400)
    assert (summary["first_token_p50_s"], summary["latency_p50_s"]) == (2.5, 6.0)


def test_there_are_sixty_questions_and_each_has_a_name() -> None:
    questions = read_questions(QUESTIONS)
    assert len(questions) == 60
    kinds = {one.id.rpartition("-")[0] for one in questions}
    assert kinds >= {
        "comparison",
        "summary",
        "fact",
        "conversation",
        "listing",
        "language",
        "missing",
        "follow",
    }


@pytest.mark.parametrize("pace", PACES.values())
def test_each_pace_is_one_that_the_stand_in_knows(pace: str) -> None:
    assert bool(parse_knobs(pace.removeprefix("@")).tps) == bool(pace)
