"""The stream of document changes with many concurrent readers, half of which lose the connection after each
event.
"""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local.run_all.stack import LocalStack
from tests.e2e.stack_client import HANG_GUARD_S, drop
from tests.e2e.streams.wire import frames_of, name_of, number_of, pieces

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PATH = "/api/documents/events"
READERS = 20


def events(stack: LocalStack, after: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and document of each event as it arrives, until the time limit."""
    received = b""
    give_up = time.monotonic() + HANG_GUARD_S
    for piece in pieces(stack, PATH, after):
        assert time.monotonic() < give_up
        received += piece
        whole, end, received = received.rpartition(b"\n\n")
        for frame in frames_of(whole + end):
            if name_of(frame) == "document":
                yield number_of(frame), json.loads(frame.split(b"\ndata: ")[1])


def until_ready(stack: LocalStack, name: str, after: int, *, cut: bool) -> list[int]:
    """Return the event numbers up to the event that reports the document as ready. With `cut`, reconnect
    after each new event.
    """
    numbers = [after]
    while True:
        for number, document in events(stack, numbers[-1]):
            is_new = number > numbers[-1]  # events of the last seconds may be sent again
            numbers.append(number)
            if (document["filename"], document["status"]) == (name, "ready"):
                return numbers
            if cut and is_new:
                break


def test_everybody_sees_a_document_become_ready_whatever_becomes_of_their_line(stack: LocalStack) -> None:
    name = "wind-turbines.md"
    # Event ids of this stream are times in microseconds, so this skips all earlier changes.
    now = int(time.time() * 1_000_000)
    with ThreadPoolExecutor(READERS) as threads:
        reading = [
            threads.submit(until_ready, stack, name, now, cut=number % 2 == 1) for number in range(READERS)
        ]
        drop(stack, name, b"# Turbines\n\nThe wind turbine on the hill yields 3 megawatts.\n")
        seen = [one.result() for one in reading]
    assert all(numbers == sorted(numbers) for numbers in seen)
