"""Many readers of one run, and slow readers: each gets the same events without delaying others."""

import contextlib
import http.client
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest

from local.run_all.stack import LocalStack
from samples.acl import ANNA
from samples.questions import FIRST_QUESTION
from tests.e2e.stack_client import eventually
from tests.e2e.streams.wire import call, events_path, frames_of, is_last, name_of, start, whole

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

QUESTION = "Summarise the Heron 400 installation guide."
DURABLE = "/runtime/webhooks/durabletask/instances"
READERS = 50
LEAVERS = 80
MOST_MB_FOR_READERS = 40  # each reader needs a connection, a task and a position in the log


def memory_mb(stack: LocalStack) -> float:
    return psutil.Process(stack.worker_pid).memory_info().rss / 1e6


@pytest.mark.nightly
def test_fifty_readers_of_one_run_all_see_the_same(paced: LocalStack) -> None:
    # The first question imports modules, whose memory must not be counted.
    whole(paced, start(paced, FIRST_QUESTION.text))
    before = memory_mb(paced)
    run_id = start(paced, QUESTION)
    with ThreadPoolExecutor(READERS) as threads:
        received = list(threads.map(lambda _: whole(paced, run_id), range(READERS)))
    assert len(set(received)) == 1
    assert is_last(frames_of(received[0])[-1])
    assert received[0] == whole(paced, run_id)
    assert memory_mb(paced) - before < MOST_MB_FOR_READERS


class IdleReader:
    """A reader that opens a stream and reads little or nothing until it is closed."""

    def __init__(self, stack: LocalStack, run_id: str, bytes_a_second: int) -> None:
        self._pace = bytes_a_second
        self._closed = threading.Event()
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self._socket.connect(("127.0.0.1", stack.ports.http))
        self._socket.settimeout(0.2)
        self._socket.sendall(
            f"GET {events_path(run_id)} HTTP/1.1\r\nHost: here\r\n"
            f"Authorization: Bearer {stack.token(ANNA)}\r\n\r\n".encode()
        )
        self.received = b""
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()
        self._socket.close()

    def _read(self) -> None:
        while not self._closed.wait(0.1):
            with contextlib.suppress(TimeoutError):
                self.received += self._socket.recv(self._pace // 10) if self._pace else b""


def test_slow_readers_slow_neither_the_run_nor_the_others(paced: LocalStack) -> None:
    run_id = start(paced, QUESTION)
    slow = [IdleReader(paced, run_id, pace) for pace in (256, 256, 0, 0, 0)]
    try:
        eventually(lambda: all(reader.received for reader in slow[:2]), "two who read a little")
        # Without a limit, idle readers would keep the stream open for ever, and slow readers until they have
        # read all of it.
        assert is_last(frames_of(whole(paced, run_id))[-1])
        received = [reader.received for reader in slow]
    finally:
        for reader in slow:
            reader.close()
    assert all(b"event: complete" not in one for one in received)
    assert [bool(one) for one in received] == [True, True, False, False, False]
    assert is_last(frames_of(whole(paced, run_id))[-1])


def test_a_run_whose_orchestration_died_lets_its_readers_go(paced: LocalStack) -> None:
    run_id = start(paced, QUESTION)
    ended = httpx.post(
        f"{paced.base_url}{DURABLE}/{run_id}/terminate",
        params={"reason": "a test"},
        headers=paced.host_headers,
        timeout=60,
    )
    assert ended.status_code == 202
    received = whole(paced, run_id)
    last = frames_of(received)[-1]
    assert (name_of(last), b"InternalError" in last) == ("error", True)
    assert whole(paced, run_id) == received
    assert call(paced, "GET", f"/api/runs/{run_id}")[1]["status"] == "failed"


def test_readers_who_leave_leave_nothing_behind(paced: LocalStack) -> None:
    run_id = start(paced, QUESTION)
    whole(paced, run_id)
    process = psutil.Process(paced.host_pid)
    before, connections = memory_mb(paced), len(process.net_connections())
    headers = {"Authorization": f"Bearer {paced.token(ANNA)}"}
    for _ in range(LEAVERS):
        line = http.client.HTTPConnection("127.0.0.1", paced.ports.http, timeout=120)
        with contextlib.closing(line):
            line.request("GET", events_path(run_id), headers=headers)
            line.getresponse().read(100)
    # Clients of the app open connections as well. The app notices a closed connection only when it sends the
    # next event or comment.
    eventually(lambda: len(process.net_connections()) - connections < LEAVERS // 4, "their connections' end")
    assert memory_mb(paced) - before < MOST_MB_FOR_READERS
