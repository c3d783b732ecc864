"""The generic loop as a reducer: a thought, an action, an observation, until there is an answer.

Pure: `next_step(state)` decides, the `observe_…` functions learn. It ends within its limits whatever the
model does: each turn counts, each call counts, and the turn before a limit must be an answer.
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from shared.platform.language_models.models import Message, ModelTurn, ToolDefinition
from shared.platform.models import Model
from shared.tools.tool_calls import PlannedCall, plan_calls, signature


class LoopLimits(Model):
    """What one answer of a generic agent may use. The loop ends within them, whatever a model does.

    Attributes:
        max_turns: of the model, the last one without tools included.
        max_tool_calls: that are carried out; those beyond get a refusal.
        max_tokens: read and written in all turns, as the endpoint counts them, else estimated.
        max_output_tokens: of one turn.
        max_observation_chars: of one tool's result, as the model sees it.
        deadline_s: for everything.
        closing_s: kept back from it for the last turn.
        turn_timeout_s, tool_timeout_s: for one turn, one call.
    """

    max_turns: int = Field(default=8, ge=1)
    max_tool_calls: int = Field(default=16, ge=0)
    max_tokens: int = Field(default=24_000, ge=1)  # as a request of the RAG agent, contracts.md, section 4
    max_output_tokens: int = Field(default=1500, ge=1)
    max_observation_chars: int = Field(default=12_000, ge=200)  # ten blocks of usual length
    deadline_s: float = Field(default=90.0, gt=0)
    closing_s: float = Field(default=20.0, ge=0)
    turn_timeout_s: float = Field(default=60.0, gt=0)
    tool_timeout_s: float = Field(default=30.0, gt=0)


class AskModel(Model):
    """Let the model speak.

    Attributes:
        may_call: False for the last turn, which must be an answer.
        limit: which limit made it the last, if one did.
    """

    kind: Literal["ask_model"] = "ask_model"
    messages: tuple[Message, ...]
    may_call: bool
    limit: str | None = None


class CallTools(Model):
    """Carry out the calls that are not refused, together."""

    kind: Literal["call_tools"] = "call_tools"
    calls: tuple[PlannedCall, ...]


class GiveAnswer(Model):
    """The end: an answer.

    Attributes:
        limit: the one that ended the search for more, if one did.
        truncated: the model stopped at its length limit.
    """

    kind: Literal["give_answer"] = "give_answer"
    text: str
    limit: str | None = None
    truncated: bool = False


class GiveUp(Model):
    """The end: used up, and nothing to show for it."""

    kind: Literal["give_up"] = "give_up"
    limit: str


ToolStep = AskModel | CallTools | GiveAnswer | GiveUp
MAX_IDLE_TURNS = 2  # turns of which every call was refused; a third one would not be wiser
CLOSING = "Answer now, in words, with what has been found; no tool can be called any more."
_CHARS_PER_TOKEN = 3  # errs to the safe side: English has about 4, JSON and German about 3
_LEFT_OUT = '{"left_out": "the result of an earlier call, to keep within the token limit"}'


class ToolLoopState(Model):
    """Where an answer stands.

    Attributes:
        messages: the conversation so far, the system prompt first.
        planned: calls of the last turn that wait for their results.
        tokens: used so far.
        overhead_tokens: what describing the tools adds to each turn.
        made: signatures of the calls that were carried out.
        idle_turns: turns in a row that brought nothing: every call refused, or nothing said.
        answer: what the model said in a turn that was its last.
        limit: the one that ended the search for more, once one did.
    """

    messages: tuple[Message, ...]
    tool_names: tuple[str, ...] = ()
    planned: tuple[PlannedCall, ...] = ()
    turns: int = 0
    calls: int = 0
    tokens: int = 0
    overhead_tokens: int = 0
    made: tuple[str, ...] = ()
    idle_turns: int = 0
    answer: ModelTurn | None = None
    limit: str | None = None


def begin(
    system: str, history: Sequence[Message], question: str, tools: Sequence[ToolDefinition]
) -> ToolLoopState:
    """The state before the first turn. `history`: earlier messages of user and assistant, oldest first."""
    messages = (Message(role="system", text=system), *history, Message(role="user", text=question))
    described = sum(len(tool.model_dump_json()) for tool in tools)
    return ToolLoopState(
        messages=messages,
        tool_names=tuple(tool.name for tool in tools),
        overhead_tokens=described // _CHARS_PER_TOKEN,
    )


def next_step(state: ToolLoopState, limits: LoopLimits, remaining_s: float) -> ToolStep:
    """What to do now; `remaining_s` until the deadline. Equal arguments give equal steps."""
    if state.answer is not None:
        return _end(state.answer, state.limit)
    if state.planned:
        return CallTools(calls=state.planned)
    limit = _limit_near(state, limits, remaining_s)
    if limit is None:
        return AskModel(messages=state.messages, may_call=bool(state.tool_names))
    closing = (*state.messages, Message(role="user", text=CLOSING)) if state.turns else state.messages
    messages = _fitted(closing, limits.max_tokens - _used_by_next(state, limits))
    if remaining_s <= 0 or state.turns >= limits.max_turns or messages is None:
        return GiveUp(limit=limit)
    return AskModel(messages=messages, may_call=False, limit=limit)


def observe_turn(state: ToolLoopState, asked: AskModel, turn: ModelTurn, limits: LoopLimits) -> ToolLoopState:
    """The state after the model spoke. Calls in a turn that had to answer in words are ignored."""
    spoken = _spoken(state, asked, turn)
    if not asked.may_call or not turn.tool_calls:
        return spoken.model_copy(update={"answer": turn, "limit": asked.limit})
    calls_left = limits.max_tool_calls - state.calls
    planned = plan_calls(turn.tool_calls, state.tool_names, state.made, calls_left)
    said = Message(role="assistant", text=turn.text, tool_calls=turn.tool_calls)
    return spoken.model_copy(update={"messages": (*state.messages, said), "planned": planned})


def observe_silence(state: ToolLoopState, asked: AskModel) -> ToolLoopState:
    """The state after a turn that brought nothing that could be read."""
    spoken = _spoken(state, asked, ModelTurn())
    return spoken.model_copy(update={"idle_turns": state.idle_turns + 1})


def observe_results(state: ToolLoopState, observations: Sequence[str]) -> ToolLoopState:
    """The state after the planned calls; one observation for each, in their order, those refused included."""
    results = tuple(
        Message(role="tool", text=text, call_id=item.call.call_id)
        for item, text in zip(state.planned, observations, strict=True)
    )
    done = [item for item in state.planned if item.arguments is not None]
    made = tuple(signature(item.call.name, item.arguments or {}) for item in done)
    return state.model_copy(
        update={
            "messages": (*state.messages, *results),
            "planned": (),
            "calls": state.calls + len(done),
            "made": (*state.made, *made),
            "idle_turns": 0 if done else state.idle_turns + 1,
        }
    )


def _end(answer: ModelTurn, limit: str | None) -> GiveAnswer | GiveUp:
    text = answer.text.strip()
    if not text:
        return GiveUp(limit=limit or "turns")
    return GiveAnswer(text=text, limit=limit, truncated=answer.cut)


def _spoken(state: ToolLoopState, asked: AskModel, turn: ModelTurn) -> ToolLoopState:
    said = Message(role="assistant", text=turn.text, tool_calls=turn.tool_calls)
    estimated = _tokens([*asked.messages, said]) + state.overhead_tokens
    return state.model_copy(
        update={"turns": state.turns + 1, "tokens": state.tokens + (turn.tokens or estimated)}
    )


def _limit_near(state: ToolLoopState, limits: LoopLimits, remaining_s: float) -> str | None:
    """The limit that leaves room for one last turn only, or for none."""
    next_turn = _tokens(state.messages) + state.overhead_tokens + limits.max_output_tokens
    reached = {
        "turns": state.turns >= limits.max_turns - 1,
        "tool calls": state.calls >= limits.max_tool_calls,
        "repeated calls": state.idle_turns >= MAX_IDLE_TURNS,
        # A turn with tools is followed by another one, which reads at least the same again.
        "tokens": state.tokens + 2 * next_turn > limits.max_tokens,
        "time": remaining_s <= limits.closing_s,
    }
    return next((name for name, is_reached in reached.items() if is_reached), None)


def _used_by_next(state: ToolLoopState, limits: LoopLimits) -> int:
    """Tokens that are spent, or will be, besides those of the messages."""
    return state.tokens + state.overhead_tokens + limits.max_output_tokens


def _fitted(messages: tuple[Message, ...], room: int) -> tuple[Message, ...] | None:
    """The messages with as many of the oldest results left out as must be; None when they never fit."""
    fitted = list(messages)
    for place, message in enumerate(messages):
        if _tokens(fitted) > room and message.role == "tool":
            fitted[place] = message.model_copy(update={"text": _LEFT_OUT})
    return tuple(fitted) if _tokens(fitted) <= room else None


def _tokens(messages: Sequence[Message]) -> int:
    chars = sum(
        len(message.text) + sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
        for message in messages
    )
    return chars // _CHARS_PER_TOKEN + 4 * len(messages)
