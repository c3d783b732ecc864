"""Calls that the script performs and that end their turn: a question to the user, or a delegation.

The next turn begins with the result. Only one such call is performed per turn.
"""

from collections.abc import Sequence

from pydantic import ValidationError

from shared.answering.models import ScriptCallResult, Turn
from shared.answering.web_consent import await_consent
from shared.evidence.reader_text import readable_line
from shared.runs.models import Choice, ClarificationOption
from shared.tools.ask_user import AskUser, AskUserParameters
from shared.tools.delegate import Delegate, DelegateParameters
from shared.tools.tool_calls import PlannedCall, RefusedCall, observation

_PARAMETERS: dict[str, type[AskUserParameters | DelegateParameters]] = {
    AskUser.name: AskUserParameters,
    Delegate.name: DelegateParameters,
}
_MAX_RESULT_CHARS = 4000
_NOBODY_ANSWERED = "The user didn't answer in time. State your assumption and continue."

ScriptCallArguments = AskUserParameters | DelegateParameters


def refuse_second_wait(planned: Sequence[PlannedCall], *, may_ask: bool) -> tuple[PlannedCall, ...]:
    """Return the calls of a turn with all but the first question or delegation refused, because a turn can
    wait for only one of them.

    Args:
        may_ask: False once the user was asked, because each answer may ask only once.
    """
    script_calls = [call for call in planned if _arguments(call) is not None]
    first = next((call for call in script_calls if may_ask or call.call.name != AskUser.name), None)
    return tuple(_refused(call) if call in script_calls and call is not first else call for call in planned)


def awaiting_consent(
    calls: Sequence[PlannedCall], consent: bool | None
) -> tuple[tuple[PlannedCall, ...], bool]:
    """Return the calls of a turn, and whether they must wait until the user consents to the use of the
    web.
    """
    return await_consent(calls, [call for call in calls if _arguments(call) is not None], consent)


def script_call(turn: Turn) -> tuple[PlannedCall, ScriptCallArguments] | None:
    """Return the question or delegation of a turn, which the script performs, and its arguments. Return None
    if there is none.
    """
    return next(
        ((call, arguments) for call in turn.calls if (arguments := _arguments(call)) is not None), None
    )


def question_of(turn: Turn) -> AskUserParameters | None:
    """Return the question that a turn asks the user, or None."""
    pending = script_call(turn)
    return pending[1] if pending and isinstance(pending[1], AskUserParameters) else None


def delegation_of(turn: Turn) -> DelegateParameters | None:
    """Return the task that a turn delegates to sub-agents, or None."""
    pending = script_call(turn)
    return pending[1] if pending and isinstance(pending[1], DelegateParameters) else None


def options_of_question(parameters: AskUserParameters) -> tuple[ClarificationOption, ...]:
    """Return the answers that the model suggests for its question as options, numbered from 1."""
    options = dict.fromkeys(filter(None, map(readable_line, parameters.options)))
    return tuple(ClarificationOption(number=n, title=option) for n, option in enumerate(options, start=1))


def answer_result(parameters: AskUserParameters, choice: Choice) -> ScriptCallResult:
    """Return the result of an `ask_user` call for the model: the user's reply and the chosen options."""
    chosen = [option.title for option in options_of_question(parameters) if option.number in choice.numbers]
    answered = {"success": True, "answer": choice.said, "chosen": chosen}
    silent = {"success": True, "answer": None, "note": _NOBODY_ANSWERED}
    return ScriptCallResult(text=observation(answered if choice.said else silent, _MAX_RESULT_CHARS))


def _arguments(planned: PlannedCall) -> ScriptCallArguments | None:
    """Return the arguments of a question or delegation. Return None for other calls and for invalid
    arguments.
    """
    kind = _PARAMETERS.get(planned.call.name)
    if kind is None or planned.arguments is None:
        return None
    try:
        return kind.model_validate(planned.arguments)
    except ValidationError:
        return None


def _refused(planned: PlannedCall) -> PlannedCall:
    refusal = RefusedCall(
        error="The user can be asked only once."
        if planned.call.name == AskUser.name
        else "A turn can contain only one delegation or question to the user.",
        error_type="BudgetExceededError",
        hints=("State your assumption and continue.",)
        if planned.call.name == AskUser.name
        else ("Call it alone in the next turn.",),
    )
    return PlannedCall(call=planned.call, refused=refusal)
