"""The host under kill -9, with a large blob, without its storage, and with a function that never returns."""

import functools
import random
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient

from local.azurite.server import connection_string, start_azurite
from tests.contract.host.conftest import sample_settings
from tests.contract.host.host_process import HostProcess, wait_until
from tests.free_ports import find_free_port

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(300)]
NewHost = Callable[..., HostProcess]
MIB = 1024 * 1024


def documents_of(host: HostProcess) -> ContainerClient:
    service = BlobServiceClient.from_connection_string(host.environment["DocumentsStorage"])
    return service.create_container(host.environment["DOCUMENTS"])


def _is_completed(client: httpx.Client, address: str) -> bool:
    return bool(client.get(address).json()["status"] == "Completed")


def test_every_blob_and_every_orchestration_survives_six_kills(new_host: NewHost) -> None:
    host = new_host()
    documents = documents_of(host)
    names = [f"{number:03}.pdf" for number in range(120)]
    started: list[str] = []
    moments = random.Random(7)
    for round_number in range(6):
        host.start()
        with host.client() as client:
            started.append(client.post("/api/square-all", json=list(range(20))).json()["id"])
        for name in names[round_number * 20 : round_number * 20 + 20]:
            documents.upload_blob(name, b"x")
        time.sleep(moments.uniform(0, 1.0))
        host.kill()
    host.start()
    wait_until(lambda: {note["name"] for note in host.notes("document")} == set(names), "all blobs")
    with host.client() as client:
        for instance_id in started:
            address = f"/api/instances/{instance_id}"
            wait_until(functools.partial(_is_completed, client, address), "an orchestration")
            assert client.get(address).json()["output"]["squares"] == [number**2 for number in range(20)]
    assert host.stop() == 0


def test_large_blob_is_never_in_the_host_s_memory(new_host: NewHost) -> None:
    with new_host() as host:
        documents = documents_of(host)
        documents.upload_blob("small.pdf", b"x")
        host.wait_for_notes("document", name="small.pdf")
        processes = psutil.Process(host.pid), psutil.Process(host.worker_pid())
        before = [process.memory_info().rss for process in processes]
        documents.upload_blob("large.pdf", b"\0" * (300 * MIB))
        host.wait_for_notes("document", name="large.pdf")
        after = [process.memory_info().rss for process in processes]
        assert sum(after) - sum(before) < 50 * MIB


def test_host_waits_for_storage_that_is_gone(tmp_path: Path) -> None:
    ports = [find_free_port() for _ in range(3)]
    storage = connection_string(*ports)
    settings = sample_settings(storage)
    service = BlobServiceClient.from_connection_string(storage)
    with HostProcess(tmp_path / "host", find_free_port(), settings) as host:
        wait_until(lambda: "cannot list" in host.errors(), "the warning")
        with start_azurite(tmp_path / "azurite", *ports):
            service.create_container(settings["DOCUMENTS"]).upload_blob("late.pdf", b"x")
            host.wait_for_notes("document", name="late.pdf")
            assert host.stop() == 0


def test_stop_gives_up_a_function_that_never_ends(new_host: NewHost) -> None:
    with new_host() as host:
        processes = psutil.Process(host.pid), psutil.Process(host.worker_pid())
        with host.client() as client:
            client.post("/api/square-all", json=[1])
            with client.stream("GET", "/api/ticks") as stream:
                next(stream.iter_lines())
            documents_of(host).upload_blob("slow.pdf", b"x")
            host.wait_for_notes("document", name="slow.pdf")
        assert host.stop() == 0
        assert not any(process.is_running() for process in processes)
