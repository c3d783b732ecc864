"""Planning of the tool calls in a model's turn, and rendering of results as JSON. Pure."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from shared.platform.language_models.models import ToolCall
from shared.platform.models import Model


class RefusedCall(Model):
    """Refusal of a tool call, with the fields of a failed tool result."""

    error: str
    error_type: str
    hints: tuple[str, ...]

    @property
    def result(self) -> dict[str, Any]:
        """The refusal as a failed tool result."""
        return {"success": False, "error": self.error, "type": self.error_type, "hints": [*self.hints]}


class PlannedCall(Model):
    """A tool call of the model: either its parsed `arguments`, or a refusal."""

    call: ToolCall
    arguments: dict[str, Any] | None = None
    refused: RefusedCall | None = None


def plan_calls(
    calls: Sequence[ToolCall], tools: Sequence[str], earlier: Collection[str], calls_left: int
) -> tuple[PlannedCall, ...]:
    """Parse and check all tool calls of one turn. Return them in order, each with its arguments or a refusal.

    Unknown tools, arguments that aren't a JSON object, repeated calls and calls beyond `calls_left` are
    refused with advice for the model.

    Args:
        tools: names of available tools.
        earlier: signatures of calls in earlier turns; see `signature`.
        calls_left: number of calls that the run may still make.
    """
    seen = set(earlier)
    planned: list[PlannedCall] = []
    for call in calls:
        judged = _judge(call, tools, seen, calls_left)
        planned.append(judged)
        if judged.arguments is not None:
            seen.add(signature(call.name, judged.arguments))
            calls_left -= 1
    return tuple(planned)


def signature(name: str, arguments: dict[str, Any]) -> str:
    """Return a key that is equal for all calls with the same name and arguments, whatever the order of the
    arguments.
    """
    return f"{name} {json.dumps(arguments, sort_keys=True)}"


def read_arguments(text: str) -> dict[str, Any] | None:
    """Parse the arguments of a call, or return None if they are not a JSON object. Empty text means no
    arguments.
    """
    try:
        arguments = json.loads(text.strip() or "{}", parse_constant=_refuse)
        # JSON can encode half a surrogate pair ("\\ud83d"), which cannot be stored or sent as UTF-8.
        json.dumps(arguments, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def _judge(call: ToolCall, tools: Sequence[str], earlier: Collection[str], calls_left: int) -> PlannedCall:
    if call.name not in tools:
        return _refused_call(
            call, f"There is no tool {call.name[:64]!r}.", f"Tools: {', '.join(tools) or 'none'}."
        )
    arguments = read_arguments(call.arguments)
    if arguments is None:
        return _refused_call(
            call, "The arguments are not a JSON object.", "Write them as one JSON object, and call again."
        )
    if signature(call.name, arguments) in earlier:
        return _refused_call(
            call,
            "This exact call was made before; its result is above.",
            "Use that result, or ask for something else.",
        )
    if calls_left <= 0:
        return _refused_call(
            call,
            "No more tools can be called for this question.",
            "Answer from the existing evidence.",
            error_type="BudgetExceededError",
        )
    return PlannedCall(call=call, arguments=arguments)


def _refused_call(
    call: ToolCall, error: str, hint: str, *, error_type: str = "InvalidQueryError"
) -> PlannedCall:
    return PlannedCall(call=call, refused=RefusedCall(error=error, error_type=error_type, hints=(hint,)))


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


# Texts of up to this length are never truncated individually.
_LONG_TEXT = 400


def observation(result: Mapping[str, Any], max_chars: int) -> str:
    """Render a result as JSON of at most `max_chars` characters.

    If it is too long, the last items of its longest list are dropped (noted as `"left_out": {"results": 7}`),
    then its longest texts are truncated with "…".
    """
    text = _json(result)
    if len(text) <= max_chars:
        return text
    shorter = _with_shorter_lists(dict(result), max_chars)
    text = _json(shorter)
    if len(text) > max_chars:
        text = _json(_cut(shorter, max(_LONG_TEXT, max_chars // 4)))
    if len(text) <= max_chars:
        return text
    note = {"success": bool(result.get("success")), "cut": ""}
    # A character may need two in a JSON string, so only half of the remaining length is used.
    return _json({**note, "cut": text[: max(max_chars - len(_json(note)), 0) // 2]})


def _with_shorter_lists(result: dict[str, Any], max_chars: int) -> dict[str, Any]:
    lists = sorted(
        (name for name, value in result.items() if isinstance(value, list)),
        key=lambda name: -len(_json(result[name])),
    )
    left_out: dict[str, int] = {}
    for name in lists:
        items = list(result[name])
        while len(items) > 1 and len(_json({**result, name: items, "left_out": left_out})) > max_chars:
            items.pop()
            left_out[name] = len(result[name]) - len(items)
        result = {**result, name: items}
    return {**result, "left_out": left_out} if left_out else result


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str) and len(value) > most:
        return f"{value[:most]}…"
    if isinstance(value, list):
        return [_cut(item, most) for item in value]
    if isinstance(value, dict):
        return {name: _cut(item, most) for name, item in value.items()}
    return value


def _json(value: Any) -> str:
    # Unpaired surrogates are valid in JSON but not in UTF-8, so they are replaced with question marks.
    return json.dumps(value, ensure_ascii=False, default=str).encode(errors="replace").decode()
