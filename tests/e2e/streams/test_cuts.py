"""Broken connections: a reader who resumes gets the same bytes as one with an unbroken connection."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from local.run_all.stack import LocalStack
from tests.e2e.streams.wire import Cutter, events_path, frames_of, is_last, number_of, pieces, start, whole

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SEED = 20251121
CUTS = 20
QUESTION = "Summarise the Heron 400 installation guide."


def test_twenty_cuts_at_random_bytes_lose_nothing_and_repeat_nothing(paced: LocalStack) -> None:
    run_id = start(paced, QUESTION)
    cutter = Cutter(paced, SEED, CUTS, largest=700)
    with ThreadPoolExecutor() as threads:
        unbroken = threads.submit(whole, paced, run_id)
        broken = cutter.read(run_id)
    expected = unbroken.result()
    assert broken == expected
    live = cutter.cuts
    while cutter.cuts < CUTS:  # the run ends before enough cuts, so the remaining cuts interrupt its replay
        assert cutter.read(run_id) == expected
    assert (live > CUTS // 3, cutter.lost) == (True, 0)
    frames = frames_of(expected)
    assert [number_of(frame) for frame in frames] == list(range(1, len(frames) + 1))
    assert [is_last(frame) for frame in frames] == [False] * (len(frames) - 1) + [True]


def comes_to_write(stack: LocalStack, run_id: str, restarts: int = 0) -> bool:
    """Wait until the run writes the first word of its answer, also after the given number of restarts. Return
    False if the run has ended.
    """
    received = b""
    for piece in pieces(stack, events_path(run_id)):
        received += piece
        frames = frames_of(received.rpartition(b'"state":"restarted"')[2] if restarts else received)
        if received.count(b'"state":"restarted"') >= restarts and b"event: token" in b"".join(frames):
            return not is_last(frames[-1])
    return False


def crash(stack: LocalStack) -> None:
    stack.kill_host()
    stack.start_host()


def test_cuts_and_a_killed_host_lose_nothing_and_repeat_nothing(paced: LocalStack) -> None:
    run_id = start(paced, QUESTION)
    cutter = Cutter(paced, SEED + 1, CUTS, largest=1200)

    with ThreadPoolExecutor() as threads:
        broken = threads.submit(cutter.read, run_id)
        assert comes_to_write(paced, run_id)
        crash(paced)
        # A slow reader may receive the restart after the end of the run.
        if comes_to_write(paced, run_id, restarts=1):
            crash(paced)
        received = broken.result()
    assert cutter.lost > 0
    assert received == whole(paced, run_id)
    frames = frames_of(received)
    assert [number_of(frame) for frame in frames] == list(range(1, len(frames) + 1))
    assert b'"state":"restarted"' in received
