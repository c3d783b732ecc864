"""Formats server-sent events as text that is the same for equal runs and easy to compare. Pure.

Ids of runs and threads, times, durations and signatures are replaced by placeholders. Differences in timing
are removed: consecutive pieces of text are joined, and the events of concurrent sub-agents are sorted by
sub-agent. Everything else is unchanged.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

_FRAME = re.compile(r"id: (\d+)\nevent: (\w+)\ndata: (.*)", re.DOTALL)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_SIGNATURE = re.compile(r"\?[^\s)\"]*\bsig=[^\s)\"]*")
# Values that are estimated from the length of the prompt if a call reports no usage, for example after a
# timeout.
ESTIMATED = {"tokens": "<tokens>", "cost_usd": "<cost>"}
_PLACEHOLDERS = {
    "attempt": "<attempt>",  # the random id of an attempt at a step
    "duration_ms": "<ms>",
    "policy_version": "<version>",  # a hash of the settings
}


@dataclass(frozen=True)
class Frame:
    """A server-sent event as received."""

    name: str
    data: dict[str, Any]


def frames_of(stream: str) -> list[Frame]:
    """Parse a stream of server-sent events. Comments are skipped.

    Raises:
        AssertionError: The ids are not 1, 2, 3, ..., or a block isn't an event.
    """
    blocks = [block for block in stream.split("\n\n") if block and not block.startswith(":")]
    frames = []
    for number, block in enumerate(blocks, start=1):
        match = _FRAME.fullmatch(block)
        assert match, f"not an event: {block!r}"
        assert int(match[1]) == number, f"event {number} has the id {match[1]}"
        frames.append(Frame(match[2], json.loads(match[3])))
    return frames


def render(frames: Iterable[Frame], names: Mapping[str, str], fields: Mapping[str, str]) -> str:
    """Format the events as numbered JSON. Values that differ between equal runs are replaced by placeholders.

    Args:
        names: placeholders by the ids that they replace.
        fields: placeholders by the names of further fields whose values they replace.
    """
    placeholders = {**_PLACEHOLDERS, **fields}
    lines: list[str] = []
    for number, frame in enumerate(_ordered(_joined(frames)), start=1):
        body = json.dumps(_stable(frame.data, names, placeholders), indent=1, ensure_ascii=False)
        lines.append(f"{number} {frame.name} {body}\n")
    return "".join(lines)


def _joined(frames: Iterable[Frame]) -> list[Frame]:
    joined: list[Frame] = []
    for frame in frames:
        before = joined[-1] if joined else None
        if before and before.name == frame.name == "token" and _without_text(before) == _without_text(frame):
            text = before.data["text"] + frame.data["text"]
            joined[-1] = Frame("token", {**before.data, "text": text})
        else:
            joined.append(frame)
    return joined


def _without_text(frame: Frame) -> dict[str, Any]:
    return {name: value for name, value in frame.data.items() if name != "text"}


def _ordered(frames: list[Frame]) -> list[Frame]:
    ordered: list[Frame] = []
    for _, group in groupby(frames, lambda frame: "child" in frame.data):
        ordered += sorted(group, key=lambda frame: frame.data.get("child", 0))
    return ordered


def _stable(value: Any, names: Mapping[str, str], fields: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            name: fields[name] if name in fields else _stable(inner, names, fields)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_stable(inner, names, fields) for inner in value]
    if not isinstance(value, str):
        return value
    for unstable, name in names.items():
        value = value.replace(unstable, name)
    return _TIME.sub("<time>", _SIGNATURE.sub("?<signature>", value))
