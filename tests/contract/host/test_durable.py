"""Durable functions through the host: the real client over HTTP, the executor, the app's functions."""

import pytest

from local.durable.http_api import WEBHOOK_PREFIX
from tests.contract.host.host_process import HostProcess, wait_until

pytestmark = pytest.mark.contract


def test_orchestration_runs_activities_reports_a_failure_and_reaches_its_own_status(
    host: HostProcess,
) -> None:
    with host.client() as client:
        instance_id = client.post("/api/square-all", json=[2, 3]).json()["id"]
        address = f"/api/instances/{instance_id}"
        wait_until(lambda: client.get(address).json()["status"] == "Completed", "the orchestration")
        output = client.get(address).json()["output"]
    assert output["squares"] == [4, 9]
    assert "KeyError: 'no such thing'" in output["failure"]
    assert output["found"] == "square_all"


def test_durable_api_answers_below_runtime(host: HostProcess) -> None:
    with host.client() as client:
        assert client.get(f"{WEBHOOK_PREFIX}/instances/unknown").status_code == 404
        started = client.post(f"{WEBHOOK_PREFIX}/orchestrators/square_all", json=[1])
        assert started.status_code == 202
