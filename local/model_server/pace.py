"""How fast hosted models answer, and what they think unseen. Pure: knobs in, knobs out.

The figures were seen at hosted endpoints; hidden tokens count against the limit of a reply, and cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from local.model_server.knobs import Knobs
from local.model_server.protocol.requests import ChatRequest


@dataclass(frozen=True)
class Pace:
    """One class of models.

    Attributes:
        first_ms: until the first token, visible or not.
        tokens_per_s: of both.
        hidden: tokens by reasoning effort; the name "" stands for a request that names none.
    """

    first_ms: int
    tokens_per_s: int
    hidden: Mapping[str, int] = field(default_factory=dict)


_BY_EFFORT = {"": 800, "none": 0, "minimal": 0, "low": 200, "medium": 800, "high": 2000}
PACES: Mapping[str, Pace] = {
    "gpt-4.1": Pace(700, 70),
    "gpt-5-mini": Pace(900, 120, _BY_EFFORT),
    "first-word": Pace(500, 65),
}


def paced(knobs: Knobs, request: ChatRequest) -> Knobs:
    """The knobs with the pace that they name, for this request."""
    pace = PACES.get(knobs.pace)
    if pace is None:
        return knobs
    hidden = pace.hidden.get(request.reasoning_effort or "", 0)
    hidden = min(hidden, request.output_limit or hidden)
    first_ms = pace.first_ms + round(hidden * 1000 / pace.tokens_per_s)
    return knobs.model_copy(update={"ttft": first_ms, "tps": pace.tokens_per_s, "hidden": hidden})
