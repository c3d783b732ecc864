"""Steps of the generic loop: thought, action, observation. What it decides to do, within which limits."""

from typing import Any, Literal

from pydantic import Field

from shared.models.base import Model
from shared.models.conversing import Message, ToolCall


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


class RefusedCall(Model):
    """Why a call is not carried out, in the words of a failed tool's result."""

    error: str
    error_type: str
    hints: tuple[str, ...]


class PlannedCall(Model):
    """A call as it was asked for, and what becomes of it: `arguments`, or a refusal."""

    call: ToolCall
    arguments: dict[str, Any] | None = None
    refused: RefusedCall | None = None


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
