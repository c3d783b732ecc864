"""Parser for knobs: faults and delays that a client requests in the model name. Pure.

    name[@knob=value[,knob=value]...]        groundwork-extractive@ttft=200,tps=50,fail=429:2,retry_after=1

docs/internals/model-server.md lists the knobs. An unknown knob is an error, so that a test can't pass because
of a typing mistake.

With `chaos=SEED`, each request gets one of all the faults, or none. The choice depends only on the seed and
the request's number, so that a failed run can be repeated.
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
    """An HTTP error returned instead of a reply: always, for the first `count` requests, or for `percent` of
    them.
    """

    status: int
    count: int | None = None
    percent: int = 100

    def is_due(self, model: str, request_number: int) -> bool:
        """Return whether a request must fail. Requests are numbered from 1 per model name, and the result is
        deterministic.
        """
        if self.count is not None:
            return request_number <= self.count
        digest = hashlib.blake2b(f"{model}#{request_number}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "big") % 100 < self.percent


def _read_failure(value: object) -> object:
    """Parse the value of the knob `fail`: STATUS, STATUS:COUNT or STATUS:PERCENT%."""
    if not isinstance(value, str):
        return value
    if not (match := _FAIL.fullmatch(value)):
        raise ValueError("expected STATUS, STATUS:COUNT or STATUS:PERCENT%")
    status, amount, is_percent = int(match[1]), int(match[2] or 100), bool(match[3])
    return Failure(status, percent=amount) if is_percent or not match[2] else Failure(status, amount)


def _known_tasks(names: tuple[str, ...]) -> tuple[str, ...]:
    """Validate task names and replace group names with their tasks."""
    if unknown := set(names) - {*TASK_GROUPS, *TASK_NAMES}:
        raise ValueError(f"unknown tasks {unknown}; choose from {(*TASK_GROUPS, *sorted(TASK_NAMES))}")
    return tuple(task for name in names for task in TASK_GROUPS.get(name, (name,)))


_Tasks = Annotated[
    tuple[str, ...], AfterValidator(_known_tasks), BeforeValidator(lambda value: tuple(value.split("+")))
]
_Number = Annotated[int | None, Field(ge=0, le=_MAX_WAIT_MS)]
_FromOne = Annotated[int | None, Field(ge=1, le=_MAX_WAIT_MS)]


class Knobs(BaseModel):
    """Faults and delays requested by a model name. Times are in milliseconds. The defaults change nothing.

    Attributes:
        toolloop: 1 calls tools wherever allowed; 2 also where forbidden, and where no tool is offered.
        delegate: delegates each question, with the advised profile.
        overtalk: minimum tokens by which a reply exceeds its limit.
        chaos: the seed of `draw`.
        thinks: adds hidden tokens before the reply (`hidden_tokens`).
        only: tasks to which the knobs apply; empty means all.
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

    def apply_to(self, task: str) -> bool:
        """Return whether the knobs apply to the task. An empty `only` applies to every task."""
        return not self.only or task in self.only


def parse_knobs(suffix: str) -> Knobs:
    """Parse the part of a model name after the @. A knob without a value means 1.

    Raises:
        ApiError: 400 on `model` for an unknown knob or an impossible value.
    """
    items = (item.partition("=") for item in suffix.split(",") if item)
    try:
        return Knobs.model_validate({name: value or "1" for name, _, value in items})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        message = f"Model name: {place}: {first['msg']}; known knobs are {', '.join(Knobs.model_fields)}"
        raise ApiError(400, message, code="invalid_knob", param="model") from None


FAULTS = tuple(
    """stall=0 stall=3 tps=1 ttft=3000 fail=429,retry_after=1 fail=429,retry_after=60 fail=500 fail=503 drop=0
    drop=3 midstream=3 cut=20 garbage=content garbage=shape garbage=body garbage=protocol filter refuse
    toolloop=2 overtalk=2000""".split()
)
_NO_FAULT = 10  # number of outcomes without a fault, about a third of all outcomes


def draw(seed: int, request_number: int) -> str:
    """Return the knobs of the fault drawn for a request, or "" for no fault. The same seed and number always
    give the same fault.
    """
    digest = hashlib.blake2b(f"{seed}#{request_number}".encode(), digest_size=8).digest()
    place = int.from_bytes(digest, "big") % (len(FAULTS) + _NO_FAULT)
    return FAULTS[place] if place < len(FAULTS) else ""


def with_fault(knobs: Knobs, request_number: int) -> Knobs:
    """Return the knobs combined with the fault drawn from their seed. The drawn values override the requested
    ones.
    """
    drawn = parse_knobs("" if knobs.chaos is None else draw(knobs.chaos, request_number))
    return knobs.model_copy(update={name: getattr(drawn, name) for name in drawn.model_fields_set})


# Reasoning tokens by effort ("" if the request sets none), as observed at hosted endpoints.
HIDDEN_TOKENS: Mapping[str, int] = {"": 800, "none": 0, "minimal": 0, "low": 200, "medium": 800, "high": 2000}


def hidden_tokens(knobs: Knobs, request: ChatRequest) -> int:
    """Return the number of hidden reasoning tokens that precede the reply. They take time, are billed and
    count against the token limit.
    """
    hidden = HIDDEN_TOKENS.get(request.reasoning_effort or "", 0) if knobs.thinks else 0
    return min(hidden, request.output_limit or hidden)
