"""Tests for calls that the script performs: one per turn, and the reply as the result of a question."""

import json
from typing import Any

from shared.answering.models import Turn
from shared.answering.script_calls import (
    answer_result,
    delegation_of,
    options_of_question,
    question_of,
    refuse_second_wait,
    script_call,
)
from shared.platform.language_models.models import ToolCall
from shared.runs.models import Choice, RunAnswer
from shared.tools.ask_user import AskUserParameters
from shared.tools.tool_calls import PlannedCall

TASK = {"task": "Compare the two reports.", "profile": "comparator"}


def planned(name: str, **arguments: Any) -> PlannedCall:
    call = ToolCall(call_id=name, name=name, arguments=json.dumps(arguments))
    return PlannedCall(call=call, arguments=arguments)


ASK = planned("ask_user", question="Which year?", options=["2023", "2024", "2023"])
DELEGATE = planned("delegate", **TASK)
SEARCH = planned("rag_semantic_search", query="pump")


def turn(*calls: PlannedCall) -> Turn:
    return Turn(said="", calls=calls, answer=RunAnswer(run_id="r", text=""))


def test_a_turn_has_the_question_or_the_delegation_that_it_calls() -> None:
    assert (script_call(turn(SEARCH, ASK)) or (None,))[0] == ASK
    question, delegation = question_of(turn(SEARCH, ASK)), delegation_of(turn(DELEGATE))
    assert question is not None
    assert question.question == "Which year?"
    assert delegation is not None
    assert (question_of(turn(DELEGATE)), delegation_of(turn(ASK))) == (None, None)


def test_calls_with_invalid_arguments_are_left_to_the_tools() -> None:
    assert script_call(turn(SEARCH, planned("ask_user", options=[]))) is None


def test_only_the_first_question_or_delegation_is_performed() -> None:
    first, search, second = refuse_second_wait([ASK, SEARCH, DELEGATE], may_ask=True)
    assert (first, search) == (ASK, SEARCH)
    assert second.refused is not None
    assert "only one delegation" in second.refused.error


def test_a_second_question_to_the_user_is_refused_and_a_delegation_is_not() -> None:
    question, delegation = refuse_second_wait([ASK, DELEGATE], may_ask=False)
    assert question.refused is not None
    assert "asked only once" in question.refused.error
    assert delegation == DELEGATE


def test_the_reply_is_the_result_of_the_question() -> None:
    parameters = AskUserParameters(question="Which year?", options=("2023", "2024", "2023"))
    assert [option.title for option in options_of_question(parameters)] == ["2023", "2024"]
    answered = json.loads(answer_result(parameters, Choice(said="the second", numbers=(2,))).text)
    assert (answered["answer"], answered["chosen"]) == ("the second", ["2024"])
    assert json.loads(answer_result(parameters, Choice()).text)["answer"] is None
