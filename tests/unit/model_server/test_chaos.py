"""Tests for faults drawn from a seed and for replies that exceed the limit."""

import json
from collections import Counter

import pytest

from local.model_server.knobs import FAULTS, Knobs, draw, parse_knobs, with_fault
from local.model_server.protocol.delivery import lengthen
from local.model_server.protocol.replies import Reply, ToolCall


def words(text: str) -> int:
    return len(text.split())


def test_every_fault_comes_and_about_a_third_of_the_requests_have_none() -> None:
    drawn = Counter(draw(7, number) for number in range(1, 2001))
    assert set(drawn) == {*FAULTS, ""}
    assert 500 < drawn[""] < 830
    assert [draw(7, number) for number in range(20)] != [draw(8, number) for number in range(20)]


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_one_that_the_knobs_know(fault: str) -> None:
    assert parse_knobs(fault) != Knobs()


def test_a_fault_goes_before_what_the_name_says_and_leaves_the_rest() -> None:
    slow = next(number for number in range(1, 999) if draw(1, number) == "tps=1")
    none = next(number for number in range(1, 999) if not draw(1, number))
    knobs = Knobs(ttft=5, tps=90, chaos=1)
    assert with_fault(knobs, slow) == Knobs(ttft=5, tps=1, chaos=1)
    assert with_fault(knobs, none) == knobs


def test_knobs_of_a_group_are_for_each_of_its_tasks() -> None:
    knobs = parse_knobs("stall=1,only=plan+sub_agent")
    assert knobs.apply_to("PlanReply")
    assert knobs.apply_to("EvidenceReport")
    assert not knobs.apply_to("documents")
    assert Knobs().apply_to("anything")


def test_json_that_is_too_long_is_still_json_of_its_shape() -> None:
    reply = Reply('{"claims": [{"text": "one two three"}], "notes": []}')
    longer = lengthen(reply, 200, words)
    assert words(longer.text) >= 200
    content = json.loads(longer.text)
    assert set(map(str, content["claims"])) == {"{'text': 'one two three'}"}
    assert content["notes"] == []


@pytest.mark.parametrize("text", ["Three short words", "", '{"number": "one"}', "[1, 2]"])
def test_any_text_gets_too_long(text: str) -> None:
    assert words(lengthen(Reply(text), 50, words).text) >= 50


def test_a_call_gets_too_long_and_stays_a_call() -> None:
    call = lengthen(Reply(tool_call=ToolCall("search", '{"query": "x"}')), 50, words).tool_call
    assert call is not None
    assert words(json.loads(call.arguments)["query"]) >= 50
