"""Results of tools as a model reads them: JSON within a limit, cut so that it stays JSON. Pure."""

import json
from collections.abc import Mapping
from typing import Any

_LONG_TEXT = 400  # characters; a text that is cut keeps at least so many


def observation(result: Mapping[str, Any], max_chars: int) -> str:
    """The result as JSON of at most `max_chars` characters.

    When it is too long, the last items of its longest list are left out, then its longest texts are cut; it
    says so: `"left_out": {"results": 7}`, and "…" at a text's end.
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
    # Each character of JSON may need two in a string of JSON, so half of the room is safe.
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
    # Halves of characters, which JSON can hold and UTF-8 cannot, become question marks.
    return json.dumps(value, ensure_ascii=False, default=str).encode(errors="replace").decode()
