"""Makes a reply longer than its limit allows, as a model that ignores it: it repeats itself. Pure.

JSON stays JSON that its schema allows: the items of its longest list, or its longest text, come again.
"""

import json
from collections.abc import Callable

from local.model_server.protocol.replies import Reply

FILLER = " This sentence only fills the length that was asked for."


def talk_over(reply: Reply, least_tokens: int, count: Callable[[str], int]) -> Reply:
    """The reply with at least that many tokens, as `count` counts them; a longer one stays as it is."""
    missing = least_tokens - count(reply.spoken)
    if missing <= 0 or reply.refusal:
        return reply
    filler = FILLER * (1 + missing // count(FILLER))
    if not reply.spoken.startswith("{"):
        return reply.saying(f"{reply.spoken}{filler}".strip())
    parts = json.loads(reply.spoken)
    lists = {name: part for name, part in parts.items() if isinstance(part, list) and part}
    texts = {name: part for name, part in parts.items() if isinstance(part, str)}
    if longest := max(lists or texts, key=lambda name: len(parts[name]), default=None):
        once = max(1, count(json.dumps(parts[longest], ensure_ascii=False)) - 2)  # without its brackets
        more = lists[longest] * (1 + missing // once) if lists else filler
        parts = {**parts, longest: parts[longest] + more}
    return reply.saying(json.dumps(parts, ensure_ascii=False))
