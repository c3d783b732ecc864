"""Trace context (W3C) as text. Pure: the id of an orchestration's span follows from what started it.

So whoever works for an orchestration knows the id of its span before that span is recorded, and a replay
comes to the same ids.

Source: W3C Trace Context, section 3.2.2 ("traceparent").
"""

import hashlib
import re
from datetime import datetime

from shared.models.tracing import TraceLink

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


def read_traceparent(header: str | None) -> tuple[int, int, int] | None:
    """Trace id, span id and flags; None when it is no trace context, which is then as if there were none."""
    found = _TRACEPARENT.fullmatch((header or "").strip())
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    return (trace_id, span_id, int(found[4], 16)) if trace_id and span_id else None


def write_traceparent(trace_id: int, span_id: int, flags: int) -> str:
    """The header's text; of the flags only `sampled` is ours to pass on."""
    return f"00-{trace_id:032x}-{span_id:016x}-{flags & 1:02x}"


def link_below(parent: str, instance_id: str, started_at: datetime) -> TraceLink | None:
    """The place of an orchestration that `parent` starts; None when that is no trace context."""
    read = read_traceparent(parent)
    if read is None:
        return None
    trace_id, _, flags = read
    digest = hashlib.sha256(f"{parent} {instance_id}".encode()).digest()
    span_id = int.from_bytes(digest[:8], "big") or 1
    return TraceLink(parent=parent, own=write_traceparent(trace_id, span_id, flags), started_at=started_at)
