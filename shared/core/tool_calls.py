"""Judging the calls that a model asks for, before any is carried out. Pure: a call is planned or refused."""

import json
from collections.abc import Collection, Sequence
from typing import Any

from shared.models.conversing import ToolCall
from shared.models.tool_steps import PlannedCall, RefusedCall


def plan_calls(
    asked: Sequence[ToolCall], tools: Sequence[str], made: Collection[str], calls_left: int
) -> tuple[PlannedCall, ...]:
    """Every call of one turn, in order.

    Refused, with what the model can do about it: a tool that there is not, arguments that are no JSON object,
    a call that was made before, and whatever goes beyond `calls_left`.

    Args:
        tools: names of those that there are.
        made: signatures of calls made before; see `signature`.
    """
    known = set(made)
    planned: list[PlannedCall] = []
    for call in asked:
        judged = _judge(call, tools, known, calls_left)
        planned.append(judged)
        if judged.arguments is not None:
            known.add(signature(call.name, judged.arguments))
            calls_left -= 1
    return tuple(planned)


def signature(name: str, arguments: dict[str, Any]) -> str:
    """The same for the same call, however its arguments are ordered."""
    return f"{name} {json.dumps(arguments, sort_keys=True)}"


def read_arguments(text: str) -> dict[str, Any] | None:
    """The arguments as a model wrote them; None when they are no JSON object. Nothing at all means none."""
    try:
        arguments = json.loads(text.strip() or "{}", parse_constant=_refuse)
        # Half a surrogate pair ("\\ud83d") can be said in JSON, and neither be stored nor sent.
        json.dumps(arguments, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def _judge(call: ToolCall, tools: Sequence[str], made: Collection[str], calls_left: int) -> PlannedCall:
    if call.name not in tools:
        return _refused(
            call, f"There is no tool {call.name[:64]!r}.", f"Tools: {', '.join(tools) or 'none'}."
        )
    arguments = read_arguments(call.arguments)
    if arguments is None:
        return _refused(
            call, "The arguments are no JSON object.", "Write them as one JSON object, and call again."
        )
    if signature(call.name, arguments) in made:
        return _refused(
            call,
            "This very call was made before; its result stands above.",
            "Use that result, or ask for something else.",
        )
    if calls_left <= 0:
        return _refused(
            call,
            "No more tools can be called for this question.",
            "Answer with what has been found.",
            error_type="BudgetExceededError",
        )
    return PlannedCall(call=call, arguments=arguments)


def _refused(call: ToolCall, error: str, hint: str, *, error_type: str = "InvalidQueryError") -> PlannedCall:
    return PlannedCall(call=call, refused=RefusedCall(error=error, error_type=error_type, hints=(hint,)))


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")
