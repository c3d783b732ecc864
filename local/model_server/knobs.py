"""Faults and speeds that a caller asks for in the model's name. Pure: parses the name, decides what is due.

    name[@knob=value[,knob=value]...]        groundwork-extractive@ttft=200,tps=50,fail=429:2,retry_after=1

The table is in docs/internals/model-server.md. An unknown knob is an error: a test must not pass
because a fault was misspelt.

With `chaos=SEED` each request gets one of all the faults, or none. What it gets depends on the seed and on
its number alone, so that a run that failed can be repeated.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from local.model_server.protocol.requests import ApiError, ChatRequest
from local.model_server.tasks import TASK_GROUPS, TASK_NAMES

_FAIL = re.compile(r"([45]\d\d)(?::(\d+)(%?))?", re.ASCII)
_MAX_WAIT_MS = 3_600_000


@dataclass(frozen=True)
class Failure:
    """An HTTP error instead of an answer: always, the first `count` times, or in `percent` of cases."""

    status: int
    count: int | None = None
    percent: int = 100

    def is_due(self, model: str, request_number: int) -> bool:
        """Whether the request with that number (from 1, per model name) fails. The same in every run."""
        if self.count is not None:
            return request_number <= self.count
        digest = hashlib.blake2b(f"{model}#{request_number}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "big") % 100 < self.percent


def _read_failure(value: object) -> object:
    """STATUS, STATUS:COUNT or STATUS:PERCENT%."""
    if not isinstance(value, str):
        return value
    if not (found := _FAIL.fullmatch(value)):
        raise ValueError("not STATUS, STATUS:COUNT or STATUS:PERCENT%")
    status, amount, is_percent = int(found[1]), int(found[2] or 100), bool(found[3])
    return Failure(status, percent=amount) if is_percent or not found[2] else Failure(status, amount)


def _known_tasks(names: tuple[str, ...]) -> tuple[str, ...]:
    """Every task of groups, and single ones."""
    if unknown := set(names) - {*TASK_GROUPS, *TASK_NAMES}:
        raise ValueError(f"{unknown} among {(*TASK_GROUPS, *sorted(TASK_NAMES))}")
    return tuple(task for name in names for task in TASK_GROUPS.get(name, (name,)))


_Tasks = Annotated[
    tuple[str, ...], AfterValidator(_known_tasks), BeforeValidator(lambda value: tuple(value.split("+")))
]
_Number = Annotated[int | None, Field(ge=0, le=_MAX_WAIT_MS)]
_FromOne = Annotated[int | None, Field(ge=1, le=_MAX_WAIT_MS)]


class Knobs(BaseModel):
    """What to do differently. Times in milliseconds unless named otherwise; None, 0 or False is off.

    Attributes:
        toolloop: 1 calls where it may; 2 also where it is told not to, and where no tool is offered.
        delegate: it hands a question over to a sub-agent when it is advised to.
        overtalk: tokens that a reply is longer, at least, than it is allowed to be.
        chaos: the seed of `draw`.
        thinks: tokens that nobody sees come before the reply (`hidden_tokens`).
        only: names of the tasks that all this is for; none = all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ttft: Annotated[int, Field(ge=0, le=_MAX_WAIT_MS)] = 0
    tps: _FromOne = None
    cut: _Number = None
    stall: _Number = None
    drop: _Number = None
    midstream: _Number = None
    retry_after: _Number = None
    overtalk: _FromOne = None
    chaos: _Number = None
    fail: Annotated[Failure | None, BeforeValidator(_read_failure)] = None
    garbage: Literal["content", "shape", "body", "protocol"] | None = None
    toolloop: Annotated[int, Field(ge=0, le=2)] = 0
    delegate: bool = False
    filter: bool = False
    refuse: bool = False
    thinks: bool = False
    only: _Tasks = ()

    def are_for(self, task: str) -> bool:
        """Whether a request for that task is treated differently."""
        return not self.only or task in self.only


def parse_knobs(suffix: str) -> Knobs:
    """Knobs as they stand behind a model's name, without the @; a bare one counts as 1.

    Raises:
        ApiError: 400 on `model` for an unknown knob or an impossible value.
    """
    given = (item.partition("=") for item in suffix.split(",") if item)
    try:
        return Knobs.model_validate({name: value or "1" for name, _, value in given})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        message = f"Model name: {place}: {first['msg']}; known are {', '.join(Knobs.model_fields)}"
        raise ApiError(400, message, code="invalid_knob", param="model") from None


FAULTS = tuple(
    """stall=0 stall=3 tps=1 ttft=3000 fail=429,retry_after=1 fail=429,retry_after=60 fail=500 fail=503 drop=0
    drop=3 midstream=3 cut=20 garbage=content garbage=shape garbage=body garbage=protocol filter refuse
    toolloop=2 overtalk=2000""".split()
)
_NO_FAULT = 10  # places of the draw that bring none: a third


def draw(seed: int, request_number: int) -> str:
    """The fault for the request with that number, as the knobs that make it; empty = none."""
    digest = hashlib.blake2b(f"{seed}#{request_number}".encode(), digest_size=8).digest()
    place = int.from_bytes(digest, "big") % (len(FAULTS) + _NO_FAULT)
    return FAULTS[place] if place < len(FAULTS) else ""


def with_fault(knobs: Knobs, request_number: int) -> Knobs:
    """The knobs with the fault that their seed draws, if they have one; it goes before what they say."""
    drawn = parse_knobs("" if knobs.chaos is None else draw(knobs.chaos, request_number))
    return knobs.model_copy(update={name: getattr(drawn, name) for name in drawn.model_fields_set})


# By reasoning effort; "" stands for a request that names none. Seen at hosted endpoints.
HIDDEN_TOKENS: Mapping[str, int] = {"": 800, "none": 0, "minimal": 0, "low": 200, "medium": 800, "high": 2000}


def hidden_tokens(knobs: Knobs, request: ChatRequest) -> int:
    """Tokens of reasoning ahead of this reply. They take their time, cost, and count against its limit."""
    hidden = HIDDEN_TOKENS.get(request.reasoning_effort or "", 0) if knobs.thinks else 0
    return min(hidden, request.output_limit or hidden)
