"""Tests for the syntax of model names and the schedule of failures."""

import pytest

from local.model_server.knobs import Failure, Knobs, parse_knobs
from local.model_server.protocol.requests import ApiError


def test_a_plain_name_has_no_knobs() -> None:
    assert parse_knobs("") == Knobs()


def test_knobs_are_read_in_any_order() -> None:
    knobs = parse_knobs("fail=429:2,ttft=200,tps=50,retry_after=1,garbage=content,toolloop=1,stall=0")
    assert knobs == Knobs(
        ttft=200, tps=50, fail=Failure(429, count=2), retry_after=1, garbage="content", toolloop=1, stall=0
    )


def test_a_bare_knob_counts_as_one() -> None:
    assert parse_knobs("toolloop,midstream") == Knobs(toolloop=1, midstream=1)


@pytest.mark.parametrize(
    "suffix",
    [
        "speed=1",
        "tps=0",
        "ttft=-1",
        "ttft=x",
        "ttft=99999999",
        "fail=200",
        "fail=429:",
        "fail=x",
        "toolloop=3",
        "overtalk=0",
        "chaos=x",
        "only=nobody",
        "only=",
        "garbage=2",
        "garbage=9",
        "cut=²",
    ],
)
def test_a_knob_that_makes_no_sense_is_refused_on_the_model_field(suffix: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_knobs(suffix)
    assert (refused.value.status, refused.value.param) == (400, "model")


def test_an_unknown_knob_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ApiError) as refused:
        parse_knobs("spede=1")
    assert all(name in str(refused.value) for name in Knobs.model_fields)


def test_a_counted_failure_is_over_after_its_count() -> None:
    assert [Failure(429, count=2).is_due("m", number) for number in (1, 2, 3)] == [True, True, False]


def test_a_failure_in_percent_hits_about_that_share_and_always_the_same() -> None:
    failure = Failure(500, percent=30)
    due = [failure.is_due("m", number) for number in range(1000)]
    assert 250 < sum(due) < 350
    assert due == [failure.is_due("m", number) for number in range(1000)]
    assert not any(Failure(500, percent=0).is_due("m", number) for number in range(100))
