"""kill -9 of only the worker: this host loses what the real host loses, and nothing more."""

import os
import signal
import time
from collections.abc import Callable

import httpx
import pytest

from local.host.worker_process import RESTART_SETTING
from tests.contract.host.host_process import HostProcess, wait_until

pytestmark = [pytest.mark.contract, pytest.mark.e2e]
NewHost = Callable[..., HostProcess]
API = "/runtime/webhooks/durabletask"


def kill_worker(host: HostProcess) -> int:
    killed = host.worker_pid()
    os.kill(killed, signal.SIGKILL)
    return killed


def answers(client: httpx.Client) -> bool:
    return client.get("/api/counters").status_code == 200


def test_calls_get_500_streams_break_and_a_new_worker_answers(new_host: NewHost) -> None:
    with new_host(**{RESTART_SETTING: "1"}) as host, host.client() as client:
        with client.stream("GET", "/api/ticks") as stream:
            lines = stream.iter_lines()
            next(lines)
            killed = kill_worker(host)
            with pytest.raises(httpx.RemoteProtocolError):
                list(lines)
        refused = client.get("/api/counters")
        assert (refused.status_code, refused.text) == (500, "")
        wait_until(lambda: answers(client), "the next worker")
        assert host.worker_pid() != killed
        assert host.stop() == 0


def test_an_activity_in_a_dead_worker_fails_and_is_not_delivered_again(new_host: NewHost) -> None:
    with new_host(**{RESTART_SETTING: "0.2"}) as host, host.client() as client:
        started = client.post(f"{API}/orchestrators/wait_once", json=1).json()["id"]
        host.wait_for_notes("wait.began")
        kill_worker(host)
        address = f"{API}/instances/{started}"
        wait_until(lambda: client.get(address).json()["runtimeStatus"] == "Failed", "the failure")
        # The activity fails, or the orchestration if it continued before the next worker was ready.
        words = ("worker process exited", "Non-Deterministic workflow detected")
        assert any(one in client.get(address).json()["output"] for one in words)
        assert len(host.notes("wait.began")) == 1


def test_an_orchestration_that_is_woken_without_a_worker_fails_and_can_be_restarted(
    new_host: NewHost,
) -> None:
    with new_host(**{RESTART_SETTING: "1"}) as host, host.client() as client:
        kill_worker(host)
        wait_until(lambda: not answers(client), "the death to be seen")
        started = client.post(f"{API}/orchestrators/square_all", json="[2]").json()["id"]
        address = f"{API}/instances/{started}"
        wait_until(lambda: client.get(address).json()["runtimeStatus"] == "Failed", "the failure")
        assert "Non-Deterministic workflow detected" in client.get(address).json()["output"]
        wait_until(lambda: answers(client), "the next worker")
        restart = client.post(f"{address}/restart", params={"restartWithNewInstanceId": "false"})
        assert restart.status_code == 202
        wait_until(lambda: client.get(address).json()["runtimeStatus"] == "Completed", "the new execution")


def test_the_third_death_ends_the_host(new_host: NewHost) -> None:
    with new_host(**{RESTART_SETTING: "0"}) as host, host.client() as client:
        for _ in range(2):
            killed = kill_worker(host)
            wait_until(lambda: answers(client) and host.worker_pid() != killed, "the next worker")  # noqa: B023
        kill_worker(host)
        assert host.wait() == 1


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/api/slow/60", {}), ("/api/files/a", {b"x-name": "Müller".encode()})],
    ids=["slow", "never reached"],
)
def test_a_call_beyond_function_timeout_ends_the_worker(
    new_host: NewHost, path: str, headers: dict[bytes, bytes]
) -> None:
    limits = {"AzureFunctionsJobHost__functionTimeout": "00:00:01", RESTART_SETTING: "0"}
    with new_host(**limits) as host, host.client() as client:
        before = host.worker_pid()
        assert client.get(path, headers=headers).status_code == 500
        wait_until(lambda: host.worker_pid() != before and answers(client), "the next worker")


def test_what_a_crashed_host_held_comes_back_when_its_time_is_over(new_host: NewHost) -> None:
    storage = "AzureFunctionsJobHost__extensions__durableTask__storageProvider__"
    host = new_host(**{f"{storage}workItemQueueVisibilityTimeout": "00:00:05"})
    host.start()
    with host.client() as client:
        client.post(f"{API}/orchestrators/wait_once", json=1)
        host.wait_for_notes("wait.began")
    host.kill()
    killed_at = time.monotonic()
    host.start()
    host.wait_for_notes("wait.began", 2)
    assert time.monotonic() - killed_at > 3  # the age of a heartbeat, minus the rounding of the clock
    host.kill()
