"""Which calls of a model are carried out, and what it is told of the others."""

import pytest

from shared.platform.language_models.models import ToolCall
from shared.tools.tool_calls import PlannedCall, plan_calls, read_arguments, signature

TOOLS = ("search", "list")


def call(name: str = "search", arguments: str = "{}", call_id: str = "c") -> ToolCall:
    return ToolCall(call_id=call_id, name=name, arguments=arguments)


def only(*calls: ToolCall, made: tuple[str, ...] = (), left: int = 9) -> PlannedCall:
    return plan_calls(calls, TOOLS, made, left)[-1]


def refusal(planned: PlannedCall) -> tuple[str, str]:
    assert planned.arguments is None
    assert planned.refused is not None
    return planned.refused.error_type, planned.refused.error + " ".join(planned.refused.hints)


def test_a_good_call_is_planned_with_its_arguments() -> None:
    assert only(call(arguments='{"query": "valve"}')).arguments == {"query": "valve"}


def test_no_arguments_at_all_are_an_empty_object() -> None:
    assert only(call(arguments="  ")).arguments == {}


def test_an_unknown_tool_is_refused_with_the_names_that_there_are() -> None:
    kind, said = refusal(only(call("delete_everything")))
    assert kind == "InvalidQueryError"
    assert "delete_everything" in said
    assert "search, list" in said


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
    made = (signature("search", {"a": 1, "b": 2}),)
    assert "before" in refusal(only(call(arguments='{"b": 2,\n"a": 1}'), made=made))[1]
    assert only(call("list", '{"a": 1, "b": 2}'), made=made).refused is None


def test_the_same_call_twice_in_one_turn_is_made_once() -> None:
    assert refusal(only(call(call_id="1"), call(call_id="2")))[0] == "InvalidQueryError"


def test_calls_beyond_the_limit_are_refused_and_refused_ones_do_not_count() -> None:
    planned = plan_calls(
        [call("nothing"), call(arguments='{"n": 1}'), call(arguments='{"n": 2}')], TOOLS, (), 1
    )
    assert [item.arguments for item in planned] == [None, {"n": 1}, None]
    assert refusal(planned[2])[0] == "BudgetExceededError"
