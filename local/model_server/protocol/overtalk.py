"""Makes a reply longer than its limit allows, as a model that ignores it: it repeats itself. Pure.

JSON stays JSON that its schema allows: the items of its longest list come again and again.
"""

import json
from collections.abc import Callable
from dataclasses import replace

from pydantic import JsonValue

from local.model_server.protocol.replies import Reply

FILLER = "This sentence only fills the length that was asked for. "
Counter = Callable[[str], int]


def talk_over(reply: Reply, least_tokens: int, count: Counter) -> Reply:
    """The reply with at least that many tokens, as `count` counts them; a longer one stays as it is."""
    if reply.refusal:
        return reply
    spoken = reply.tool_call.arguments if reply.tool_call else reply.text
    missing = least_tokens - count(spoken)
    if missing <= 0:
        return reply
    text = _lengthen(spoken, missing, count)
    if reply.tool_call:
        return replace(reply, tool_call=replace(reply.tool_call, arguments=text))
    return replace(reply, text=text)


def _lengthen(text: str, missing: int, count: Counter) -> str:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = None
    if not isinstance(value, dict) or not value:
        return f"{text} {_filler(missing, count)}".strip()
    return json.dumps(_lengthen_object(value, missing, count), ensure_ascii=False)


def _lengthen_object(value: dict[str, JsonValue], missing: int, count: Counter) -> dict[str, JsonValue]:
    lists = {name: part for name, part in value.items() if isinstance(part, list) and part}
    if lists:
        name = max(lists, key=lambda one: len(lists[one]))
        once = max(1, count(json.dumps(lists[name], ensure_ascii=False)) - 2)  # without its brackets
        return {**value, name: lists[name] * (2 + missing // once)}
    texts = {name: part for name, part in value.items() if isinstance(part, str)}
    if not texts:
        return value
    name = max(texts, key=lambda one: len(texts[one]))
    return {**value, name: f"{texts[name]} {_filler(missing, count)}"}


def _filler(tokens: int, count: Counter) -> str:
    return FILLER * (1 + tokens // max(1, count(FILLER)))
