"""Makes a reply longer than its limit allows, as a model that ignores it: it repeats itself. Pure.

JSON stays JSON that its schema allows: the items of its longest list, or its longest text, come again.
"""

import json
from collections.abc import Callable

from local.model_server.protocol.replies import Reply

FILLER = "This sentence only fills the length that was asked for. "
Counter = Callable[[str], int]


def talk_over(reply: Reply, least_tokens: int, count: Counter) -> Reply:
    """The reply with at least that many tokens, as `count` counts them; a longer one stays as it is."""
    missing = least_tokens - count(reply.spoken)
    if missing <= 0 or reply.refusal:
        return reply
    filler = FILLER * (1 + missing // max(1, count(FILLER)))
    try:
        value = json.loads(reply.spoken)
    except json.JSONDecodeError:
        value = None
    parts = value if isinstance(value, dict) else {}
    repeatable = {name: part for name, part in parts.items() if part and isinstance(part, list)}
    texts = {name: part for name, part in parts.items() if isinstance(part, str)}
    if longest := max(repeatable or texts, key=lambda name: len(parts[name]), default=None):
        once = max(1, count(json.dumps(parts[longest], ensure_ascii=False)) - 2)  # without its brackets
        more = repeatable[longest] * (1 + missing // once) if repeatable else f" {filler}"
        return reply.saying(json.dumps({**parts, longest: parts[longest] + more}, ensure_ascii=False))
    return reply.saying(reply.spoken if parts else f"{reply.spoken} {filler}".strip())
