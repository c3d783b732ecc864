"""The generic loop: it ends within its limits, whatever the model does."""

from typing import Any

import pytest

from shared.platform.language_models.models import Message, ModelTurn, ToolCall, ToolDefinition
from shared.tools.loop import (
    CLOSING,
    AskModel,
    CallTools,
    GiveAnswer,
    GiveUp,
    LoopLimits,
    ToolLoopState,
    ToolStep,
    begin,
    next_step,
    observe_results,
    observe_silence,
    observe_turn,
)

TOOL = ToolDefinition(name="search", description="Searches.", parameters={"type": "object"})
LIMITS = LoopLimits(max_turns=4, max_tool_calls=5, max_tokens=20_000, closing_s=5, deadline_s=60)
PLENTY_S = 60.0


def asked(state: ToolLoopState, limits: LoopLimits = LIMITS, remaining_s: float = PLENTY_S) -> AskModel:
    step = next_step(state, limits, remaining_s)
    assert isinstance(step, AskModel)
    return step


def start(*history: Message, tools: tuple[ToolDefinition, ...] = (TOOL,)) -> ToolLoopState:
    return begin("Be good.", history, "Why?", tools)


def calls(*arguments: str, **turn: Any) -> ModelTurn:
    return ModelTurn(
        tool_calls=tuple(
            ToolCall(call_id=f"c{place}", name="search", arguments=text)
            for place, text in enumerate(arguments)
        ),
        **turn,
    )


def play(
    state: ToolLoopState, turn: ModelTurn, limits: LoopLimits = LIMITS, result: str = '{"success": true}'
) -> ToolLoopState:
    """One turn of the model, and what its calls bring."""
    state = observe_turn(state, asked(state, limits), turn, limits)
    if isinstance(step := next_step(state, limits, PLENTY_S), CallTools):
        state = observe_results(state, [result] * len(step.calls))
    return state


def run(turns: list[ModelTurn], limits: LoopLimits = LIMITS) -> tuple[list[ToolStep], ToolLoopState]:
    """All steps when the model says these turns, the last one for ever."""
    state, steps = start(), list[ToolStep]()
    while len(steps) < 100:
        step = next_step(state, limits, PLENTY_S)
        steps.append(step)
        match step:
            case AskModel():
                state = observe_turn(state, step, turns.pop(0) if len(turns) > 1 else turns[0], limits)
            case CallTools():
                state = observe_results(state, ["{}"] * len(step.calls))
            case _:
                return steps, state
    raise AssertionError("it does not end")


def test_words_end_it() -> None:
    state = play(start(), ModelTurn(text=" Because. "))
    assert next_step(state, LIMITS, PLENTY_S) == GiveAnswer(text="Because.")


def test_results_come_back_as_messages_that_name_their_call() -> None:
    state = play(start(), calls('{"n": 1}', '{"n": 2}', text="Let me look."), result="R")
    said, *results = state.messages[2:]
    assert (said.role, said.text, len(said.tool_calls)) == ("assistant", "Let me look.", 2)
    assert [(message.role, message.call_id, message.text) for message in results] == [
        ("tool", "c0", "R"),
        ("tool", "c1", "R"),
    ]


def test_the_history_stands_between_the_prompt_and_the_question() -> None:
    state = start(Message(role="user", text="Who?"), Message(role="assistant", text="Me."))
    assert [message.text for message in asked(state).messages] == ["Be good.", "Who?", "Me.", "Why?"]


def test_a_model_that_calls_for_ever_is_told_to_answer_and_ended_when_it_does_not() -> None:
    steps, state = run([calls(f'{{"n": {number}}}') for number in range(50)])
    turns = [step for step in steps if isinstance(step, AskModel)]
    assert [step.may_call for step in turns] == [True, True, True, False]
    assert turns[-1].messages[-1].text == CLOSING
    assert isinstance(steps[-1], GiveUp)
    assert state.turns == LIMITS.max_turns


def test_an_answer_in_the_last_turn_says_which_limit_brought_it() -> None:
    turns = [*(calls(f'{{"n": {number}}}') for number in range(3)), ModelTurn(text="Roughly so.")]
    steps, _ = run(turns)
    assert steps[-1] == GiveAnswer(text="Roughly so.", limit="turns")


def test_more_calls_than_allowed_are_not_made() -> None:
    steps, state = run([calls(*(f'{{"n": {number}}}' for number in range(20))), ModelTurn(text="So.")])
    assert state.calls == LIMITS.max_tool_calls
    assert steps[-1] == GiveAnswer(text="So.", limit="tool calls")


def test_a_model_that_repeats_itself_is_told_to_answer() -> None:
    steps, state = run([calls('{"n": 1}')], LIMITS.model_copy(update={"max_turns": 50}))
    assert state.calls == 1
    assert [step.limit for step in steps if isinstance(step, AskModel)][-1] == "repeated calls"
    assert isinstance(steps[-1], GiveUp)


def test_silence_counts_as_a_turn_that_brought_nothing() -> None:
    state = start()
    for _ in range(2):
        state = observe_silence(state, asked(state))
    assert asked(state).limit == "repeated calls"


@pytest.mark.parametrize("counted", [None, 3000])
def test_tokens_are_never_exceeded_and_old_results_make_room_for_the_last_turn(counted: int | None) -> None:
    limits = LoopLimits(max_turns=50, max_tool_calls=50, max_tokens=12_000, max_output_tokens=500)
    state, most = start(), 0
    for number in range(50):
        step = next_step(state, limits, PLENTY_S)
        if not isinstance(step, AskModel) or not step.may_call:
            break
        state = play(state, calls(f'{{"n": {number}}}', tokens=counted), limits, result="word " * 1500)
        most = max(most, state.tokens)
    assert isinstance(step, AskModel), "there is room for an answer"
    assert step.limit == "tokens"
    assert most <= limits.max_tokens
    assert len(step.messages) == len(state.messages) + 1


def test_a_question_that_does_not_fit_is_given_up_before_it_is_asked() -> None:
    limits = LoopLimits(max_tokens=1000, max_output_tokens=900)
    assert next_step(begin("S", (), "word " * 500, (TOOL,)), limits, PLENTY_S) == GiveUp(limit="tokens")


def test_near_the_deadline_an_answer_is_asked_for_and_behind_it_nothing() -> None:
    state = play(start(), calls("{}"))
    assert asked(state, remaining_s=4.0).may_call is False
    assert next_step(state, LIMITS, -0.1) == GiveUp(limit="time")


def test_an_agent_without_tools_answers_in_its_first_turn() -> None:
    state = start(tools=())
    step = asked(state)
    assert (step.may_call, step.limit) == (False, None)
    assert next_step(observe_turn(state, step, ModelTurn(text="Hi."), LIMITS), LIMITS, 1) == GiveAnswer(
        text="Hi."
    )


def test_one_turn_alone_is_an_answer() -> None:
    step = asked(start(), LIMITS.model_copy(update={"max_turns": 1}))
    assert step.may_call is False
    assert step.messages[-1].text == "Why?"


def test_an_answer_that_was_cut_off_says_so() -> None:
    state = play(start(), ModelTurn(text="It is", cut=True))
    assert next_step(state, LIMITS, PLENTY_S) == GiveAnswer(text="It is", truncated=True)


def test_a_state_can_be_stored_and_goes_on() -> None:
    state = play(start(), calls("{}"))
    assert ToolLoopState.model_validate_json(state.model_dump_json()) == state
