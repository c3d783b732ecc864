"""Server-sent events, read from lines. Knows nothing of connections."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    number: int
    name: str
    data: dict[str, Any]


def read_events(lines: Iterator[str]) -> Iterator[Event | None]:
    """Server-sent events; None for each comment, which tells that the connection lives.

    An event that breaks off, at the end of a connection, is none: it comes again.
    """
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            yield None
        elif line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif "data" in fields:
            yield Event(int(fields.get("id", 0)), fields.get("event", ""), json.loads(fields["data"]))
            fields = {}
