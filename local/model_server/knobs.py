"""Faults and speeds that a caller asks for in the model's name. Pure: parses the name, decides what is due.

    name[@knob=value[,knob=value]...]        groundwork-extractive@ttft=200,tps=50,fail=429:2,retry_after=1

The table is in docs/internals/model-server.md. An unknown knob is an error: a test must not pass
because a fault was misspelt.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Literal

from local.model_server.protocol.errors import ApiError
from local.model_server.tasks import TASK_GROUPS, TASK_NAMES

Garbage = Literal["content", "shape", "body", "protocol"]
Dialect = Literal["openai", "pydantic", "router", "text"]
_MAX_WAIT_MS = 3_600_000
_FAIL = re.compile(r"(\d{3})(?::(\d+)(%?))?")
_ERROR_STATUS = range(400, 600)


@dataclass(frozen=True)
class Failure:
    """An HTTP error instead of an answer: always, the first `count` times, or in `percent` of cases."""

    status: int
    count: int | None = None
    percent: int | None = None

    def is_due(self, model: str, request_number: int) -> bool:
        """Whether the request with that number (from 1, per model name) fails. The same in every run."""
        if self.count is not None:
            return request_number <= self.count
        if self.percent is not None:
            digest = hashlib.blake2b(f"{model}#{request_number}".encode(), digest_size=4).digest()
            return int.from_bytes(digest, "big") % 100 < self.percent
        return True


@dataclass(frozen=True)
class Knobs:
    """What to do differently. Times in milliseconds unless named otherwise; None, 0 or False is off.

    Attributes:
        toolloop: 1 calls where it may; 2 also where it is told not to, and where no tool is offered.
        delegate: it hands a question over to a sub-agent when it is advised to.
        overtalk: tokens that a reply is longer, at least, than it is allowed to be.
        chaos: the seed of `chaos.draw`.
        without, ignore: parts of the protocol (`PARTS`) that are refused, or accepted and ignored.
        dialect: how a refusal is worded.
        pace: a class of hosted models (`pace.py`); `hidden`: tokens that it thinks ahead of this reply.
        fenced, think: JSON comes among words and in a fence; thoughts come ahead of what is said.
        matryoshka: vectors are shortened on demand.
        only: names of the tasks that all this is for; none = all.
    """

    ttft: int = 0
    tps: int | None = None
    length: int | None = None
    drip: int | None = None
    cut: int | None = None
    stall: int | None = None
    drop: int | None = None
    midstream: int | None = None
    retry_after: int | None = None
    overtalk: int | None = None
    chaos: int | None = None
    fail: Failure | None = None
    garbage: Garbage | None = None
    toolloop: int = 0
    delegate: bool = False
    filter: bool = False
    refuse: bool = False
    without: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    dialect: Dialect = "openai"
    pace: str = ""
    hidden: int = 0
    fenced: bool = False
    think: bool = False
    matryoshka: bool = False
    only: tuple[str, ...] = ()

    def are_for(self, task: str) -> bool:
        """Whether a request for that task is treated differently."""
        return not self.only or task in self.only


@dataclass(frozen=True)
class ModelName:
    """A requested model: `base` is a model of this server, `full` what was asked for, knobs and all."""

    full: str
    base: str
    knobs: Knobs


_NUMBERS = tuple("ttft tps length drip cut stall drop midstream retry_after overtalk chaos".split())
_FLAGS = ("delegate", "filter", "refuse", "fenced", "think", "matryoshka")
_CHOICES: dict[str, dict[str, int | str]] = {
    "garbage": {"1": "content", **{kind: kind for kind in ("content", "shape", "body", "protocol")}},
    "toolloop": {"0": 0, "1": 1, "2": 2},
    "dialect": {name: name for name in ("openai", "pydantic", "router", "text")},
    "pace": {name: name for name in ("none", "gpt-4.1", "gpt-5-mini", "first-word")},
    **{flag: {"0": False, "1": True} for flag in _FLAGS},
}
# What an endpoint may lack; base64 and dimensions are of embeddings.
PARTS = tuple(
    "json_schema json_object tools stream_options max_completion_tokens max_tokens system images base64 "
    "dimensions".split()
)
_AT_LEAST_ONE = frozenset({"tps", "length", "drip", "overtalk"})
KNOB_NAMES = (*_NUMBERS, "fail", *_CHOICES, "without", "ignore", "only")


def parse_model_name(full: str) -> ModelName:
    """Split a model's name from its knobs.

    Raises:
        ApiError: 400 on `model` for an unknown knob or an impossible value.
    """
    base, _, suffix = full.partition("@")
    return ModelName(full, base, parse_knobs(suffix))


def parse_knobs(suffix: str) -> Knobs:
    """Knobs as they stand behind a model's name, without the @.

    Raises:
        ApiError: 400 on `model` for an unknown knob or an impossible value.
    """
    settings: dict[str, int | str | tuple[str, ...] | Failure] = {}
    for item in filter(None, suffix.split(",")):
        name, _, value = item.partition("=")
        settings[name] = _parse_value(name, value or "1")
    return Knobs(**settings)  # type: ignore[arg-type]


def _parse_value(name: str, value: str) -> int | str | tuple[str, ...] | Failure:
    if name in _NUMBERS:
        return _parse_number(name, value)
    if value in _CHOICES.get(name, {}):
        return _CHOICES[name][value]
    if name == "fail":
        return _parse_failure(value)
    if name == "only":
        return _parse_tasks(value)
    if name in ("without", "ignore"):
        return _parse_parts(name, value)
    if name not in KNOB_NAMES:
        raise _bad(f"unknown knob {name!r}; known are {', '.join(KNOB_NAMES)}")
    raise _bad(f"{name}={value}")


def _parse_number(name: str, value: str) -> int:
    if not value.isascii() or not value.isdigit() or len(value) > 8:
        raise _bad(f"{name}={value} is not a whole number")
    number = int(value)
    if number < (name in _AT_LEAST_ONE) or number > _MAX_WAIT_MS:
        raise _bad(f"{name}={value} is out of range")
    return number


def _parse_failure(value: str) -> Failure:
    found = _FAIL.fullmatch(value)
    if not found or int(found.group(1)) not in _ERROR_STATUS:
        raise _bad(f"fail={value}; it is STATUS, STATUS:COUNT or STATUS:PERCENT%")
    status, amount, percent = found.groups()
    if amount is None:
        return Failure(int(status))
    return Failure(int(status), percent=int(amount)) if percent else Failure(int(status), count=int(amount))


def _parse_tasks(value: str) -> tuple[str, ...]:
    """ "plan+sub_agent" names every task of both groups."""
    tasks: list[str] = []
    for name in value.split("+"):
        if name not in TASK_GROUPS and name not in TASK_NAMES:
            raise _bad(f"only={name}; known are {', '.join((*TASK_GROUPS, *sorted(TASK_NAMES)))}")
        tasks += TASK_GROUPS.get(name, (name,))
    return tuple(dict.fromkeys(tasks))


def _parse_parts(name: str, value: str) -> tuple[str, ...]:
    parts = tuple(value.split("+"))
    if unknown := set(parts) - set(PARTS):
        raise _bad(f"{name}={'+'.join(sorted(unknown))}; known are {', '.join(PARTS)}")
    return parts


def _bad(reason: str) -> ApiError:
    return ApiError(400, f"Model name: {reason}", code="invalid_knob", param="model")
