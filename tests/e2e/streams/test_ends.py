"""Streams that end before their run, on purpose or because it is cancelled, and ids that were never sent."""

from collections.abc import Iterator

import pytest

from local.run_all.stack import LocalStack
from samples.questions import FIRST_QUESTION
from tests.e2e.streams.conftest import PACED
from tests.e2e.streams.wire import (
    call,
    events_path,
    frames_of,
    is_last,
    name_of,
    number_of,
    pieces,
    start,
    status_of,
    whole,
)
from tests.e2e.sub_agents.hosts import configured

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

RESUME = b": resume with Last-Event-ID\n\n"
QUESTION = "Summarise the Heron 400 installation guide."


@pytest.fixture(scope="module")
def short_streams(stack: LocalStack) -> Iterator[LocalStack]:
    """Yield a paced host whose streams end on purpose after a second."""
    with configured(stack, **PACED, STREAM_SECONDS="1") as running:
        yield running


def test_a_stream_ends_on_purpose_and_is_resumed_until_the_run_ends(short_streams: LocalStack) -> None:
    run_id = start(short_streams, QUESTION)
    frames: list[bytes] = []
    lines = 0
    while not (frames and is_last(frames[-1])):
        received = b"".join(
            pieces(short_streams, events_path(run_id), number_of(frames[-1]) if frames else 0)
        )
        frames += frames_of(received)
        lines += 1
        assert received.endswith(RESUME) or is_last(frames[-1])
    assert lines > 2
    replayed: list[bytes] = []
    for _ in range(lines):
        replayed += frames_of(b"".join(pieces(short_streams, events_path(run_id), len(replayed))))
    assert replayed == frames
    assert [number_of(frame) for frame in frames] == list(range(1, len(frames) + 1))


def test_whoever_has_seen_the_end_is_told_to_stop(short_streams: LocalStack, finished: str) -> None:
    last = number_of(frames_of(whole(short_streams, finished))[-1])
    address = events_path(finished)
    assert status_of(short_streams, "GET", address, {"Last-Event-ID": str(last)}) == 204
    assert status_of(short_streams, "GET", address, {"Last-Event-ID": str(last - 1)}) == 200
    assert status_of(short_streams, "GET", address, {"Last-Event-ID": str(last + 1)}) == 400


@pytest.fixture(scope="module")
def finished(short_streams: LocalStack) -> str:
    """Return the id of a run that has ended, by cancellation or because it completed first."""
    run_id = start(short_streams, FIRST_QUESTION.text)
    assert call(short_streams, "POST", f"/api/runs/{run_id}/cancel")[0] in (200, 409)
    return run_id


def test_a_cancelled_run_ends_its_streams_with_its_event(short_streams: LocalStack) -> None:
    run_id = start(short_streams, QUESTION)
    received = b""
    cancelled = None
    for piece in pieces(short_streams, events_path(run_id)):
        received += piece
        if cancelled is None and received.count(b"\n\n") >= 3:
            cancelled = call(short_streams, "POST", f"/api/runs/{run_id}/cancel")[0]
    assert cancelled == 200
    assert not received.endswith(RESUME), "it lasted longer than its stream"
    last = frames_of(received)[-1]
    assert name_of(last) == "error"
    assert b"RunCancelledError" in last
    assert frames_of(whole(short_streams, run_id))[-1] == last
