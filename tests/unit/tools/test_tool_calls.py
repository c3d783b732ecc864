"""Tests for tool calls: accepted and rejected calls, and the results that the model receives."""

import json

import pytest

from shared.platform.language_models.models import ToolCall
from shared.tools.tool_calls import PlannedCall, observation, plan_calls, read_arguments, signature

TOOLS = ("search", "list")


def call(name: str = "search", arguments: str = "{}", call_id: str = "c") -> ToolCall:
    return ToolCall(call_id=call_id, name=name, arguments=arguments)


def only(*calls: ToolCall, earlier: tuple[str, ...] = (), left: int = 9) -> PlannedCall:
    return plan_calls(calls, TOOLS, earlier, left)[-1]


def refusal(planned: PlannedCall) -> tuple[str, str]:
    assert planned.arguments is None
    assert planned.refused is not None
    return planned.refused.error_type, planned.refused.error + " ".join(planned.refused.hints)


def test_a_good_call_is_planned_with_its_arguments() -> None:
    assert only(call(arguments='{"query": "valve"}')).arguments == {"query": "valve"}


def test_no_arguments_at_all_are_an_empty_object() -> None:
    assert only(call(arguments="  ")).arguments == {}


def test_an_unknown_tool_is_refused_with_the_names_that_there_are() -> None:
    kind, error = refusal(only(call("delete_everything")))
    assert kind == "InvalidQueryError"
    assert "delete_everything" in error
    assert "search, list" in error


@pytest.mark.parametrize(
    "text",
    [
        '{"query": "no end',
        "[1]",
        '"query"',
        "null",
        "{'query': 1}",
        '{"x": NaN}',
        '{"q": "\\ud83d"}',
        "[" * 100_000,
        '{"n": ' + "9" * 5000 + "}",
    ],
    ids=range(9),
)
def test_arguments_that_are_no_json_object_are_refused(text: str) -> None:
    assert read_arguments(text) is None
    assert refusal(only(call(arguments=text)))[0] == "InvalidQueryError"


def test_the_same_call_again_is_refused_however_its_arguments_are_written() -> None:
    earlier = (signature("search", {"a": 1, "b": 2}),)
    assert "before" in refusal(only(call(arguments='{"b": 2,\n"a": 1}'), earlier=earlier))[1]
    assert only(call("list", '{"a": 1, "b": 2}'), earlier=earlier).refused is None


def test_the_same_call_twice_in_one_turn_is_made_once() -> None:
    assert refusal(only(call(call_id="1"), call(call_id="2")))[0] == "InvalidQueryError"


def test_calls_beyond_the_limit_are_refused_and_refused_ones_do_not_count() -> None:
    planned = plan_calls(
        [call("nothing"), call(arguments='{"n": 1}'), call(arguments='{"n": 2}')], TOOLS, (), 1
    )
    assert [item.arguments for item in planned] == [None, {"n": 1}, None]
    assert refusal(planned[2])[0] == "BudgetExceededError"


BLOCKS = [{"block_id": f"b{number}", "content": "word " * 60} for number in range(20)]


def test_a_short_result_is_shown_whole() -> None:
    assert json.loads(observation({"success": True, "count": 1}, 500)) == {"success": True, "count": 1}


@pytest.mark.parametrize("most", [200, 500, 1000, 5000])
@pytest.mark.parametrize(
    "result",
    [
        {"success": True, "results": BLOCKS, "result_count": 20},
        {"success": True, "document": {"summary_standard": 'a "quoted" line\n' * 2000}},
        {"success": True, "results": [{"content": "\\" * 9000}] * 3, "hints": ["x" * 3000] * 3},
        {"success": True, **{f"field_{number}": "v" * 300 for number in range(100)}},
    ],
)
def test_a_long_result_keeps_to_the_limit_and_stays_json(result: dict[str, object], most: int) -> None:
    text = observation(result, most)
    assert len(text) <= most
    assert json.loads(text)["success"] is True


def test_the_last_items_of_a_list_are_left_out_first_and_it_says_so() -> None:
    result = json.loads(observation({"success": True, "results": BLOCKS, "result_count": 20}, 2000))
    result_count = len(result["results"])
    assert result["results"] == BLOCKS[:result_count]
    assert 1 < result_count < 20
    assert result["left_out"] == {"results": 20 - result_count}
    assert result["result_count"] == 20


def test_a_long_text_alone_is_cut_visibly() -> None:
    result = json.loads(observation({"success": True, "document": {"summary": "s" * 9000}}, 2000))
    assert result["document"]["summary"].endswith("…")


def test_half_a_character_does_not_stop_the_conversation() -> None:
    assert observation({"success": True, "text": "\ud83d"}, 500).encode()
