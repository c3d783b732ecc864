"""Calls of a turn that the loop carries out: a question to the person, and work for sub-agents.

Such a call ends its turn, and the next turn begins with its result. One is carried out per turn.
"""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import ValidationError

from shared.answering.models import HeldResult, Turn
from shared.runs.models import Choice, ClarificationOption
from shared.tools.ask_user import AskUser, AskUserParameters
from shared.tools.base import Parameters
from shared.tools.delegate import Delegate, DelegateParameters
from shared.tools.tool_calls import PlannedCall, RefusedCall, observation

_HELD: dict[str, type[Parameters]] = {AskUser.name: AskUserParameters, Delegate.name: DelegateParameters}
_MAX_RESULT_CHARS = 4000
_NOBODY_ANSWERED = "Nobody answered in time. State what you assume, and go on."

Arguments = TypeVar("Arguments", bound=Parameters)


def with_one_held(planned: Sequence[PlannedCall], *, may_ask: bool) -> tuple[PlannedCall, ...]:
    """The calls of a turn, those refused for which the loop would have to stop again.

    Args:
        may_ask: False once the person was asked: an answer asks back once.
    """
    held = [call for call in planned if _arguments(call) is not None]
    first = next((call for call in held if may_ask or call.call.name != AskUser.name), None)
    return tuple(_refused(call) if call in held and call is not first else call for call in planned)


def held_call(turn: Turn) -> PlannedCall | None:
    """The call that the loop carries out before the next turn."""
    return next((call for call in turn.calls if _arguments(call) is not None), None)


def question_of(turn: Turn) -> AskUserParameters | None:
    """What a turn asks the person; None if it asks nothing."""
    return _arguments_of(turn, AskUserParameters)


def delegation_of(turn: Turn) -> DelegateParameters | None:
    """What a turn hands to sub-agents; None if it hands on nothing."""
    return _arguments_of(turn, DelegateParameters)


def options_of_question(asked: AskUserParameters) -> tuple[ClarificationOption, ...]:
    """The answers that a model offers, numbered from 1."""
    options = dict.fromkeys(option.strip() for option in asked.options)
    return tuple(ClarificationOption(number=n, title=option) for n, option in enumerate(options, start=1))


def answer_result(asked: AskUserParameters, choice: Choice) -> HeldResult:
    """The result of `ask_user`: the person's words, and the options that they mean."""
    chosen = [option.title for option in options_of_question(asked) if option.number in choice.numbers]
    answered = {"success": True, "answer": choice.said, "chosen": chosen}
    silent = {"success": True, "answer": None, "note": _NOBODY_ANSWERED}
    return HeldResult(text=observation(answered if choice.said else silent, _MAX_RESULT_CHARS))


def _arguments_of(turn: Turn, kind: type[Arguments]) -> Arguments | None:
    call = held_call(turn)
    arguments = None if call is None else _arguments(call)
    return arguments if isinstance(arguments, kind) else None


def _arguments(planned: PlannedCall) -> Parameters | None:
    """Those of a call that the loop carries out. One whose arguments are wrong is answered as any other."""
    kind = _HELD.get(planned.call.name)
    if kind is None or planned.arguments is None:
        return None
    try:
        return kind.model_validate(planned.arguments)
    except ValidationError:
        return None


def _refused(planned: PlannedCall) -> PlannedCall:
    refusal = RefusedCall(
        error="The user can be asked once."
        if planned.call.name == AskUser.name
        else "One delegation, or question to the user, is carried out per turn.",
        error_type="BudgetExceededError",
        hints=("State what you assume, and go on.",)
        if planned.call.name == AskUser.name
        else ("Call it alone, in the next turn.",),
    )
    return PlannedCall(call=planned.call, refused=refusal)
