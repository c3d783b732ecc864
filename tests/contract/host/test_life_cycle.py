"""Start, stop and crash of the host."""

import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from azure.storage.blob import BlobServiceClient

from tests.contract.host.conftest import sample_settings
from tests.contract.host.host_process import ROOT, SAMPLE_APP, HostProcess
from tests.free_ports import find_free_port

pytestmark = [pytest.mark.contract, pytest.mark.e2e]
NewHost = Callable[..., HostProcess]


def test_ready_line_names_the_address_and_stop_ends_open_event_streams(new_host: NewHost) -> None:
    with new_host() as host:
        assert host.ready_line == f"host ready on {host.base_url} (22 functions)"
        with host.client() as client, client.stream("GET", "/api/ticks") as stream:
            lines = stream.iter_lines()
            next(lines)
            stopping = threading.Thread(target=host.stop)
            stopping.start()
            rest = list(lines)  # the stream ends normally, without a protocol error
            stopping.join()
        assert "data: tick" in rest
        assert len(host.notes("ticks.ended")) == 1
        assert "Traceback" not in host.errors()


def test_stop_lets_a_running_request_end(new_host: NewHost) -> None:
    with new_host() as host:
        answers: list[httpx.Response] = []
        address = f"{host.base_url}/api/slow/1"
        asking = threading.Thread(target=lambda: answers.append(httpx.get(address, timeout=60)))
        with host.client() as client:
            asking.start()
            while not client.get("/api/counters").json().get("slow_began"):
                pass
        assert host.stop() == 0
        asking.join()
        assert answers[0].json() == "done"


def test_blob_event_survives_kill_9(new_host: NewHost) -> None:
    host = new_host()
    settings = sample_settings_of(host)
    container = BlobServiceClient.from_connection_string(settings["DocumentsStorage"]).get_container_client(
        settings["DOCUMENTS"]
    )
    container.create_container()
    host.start()
    container.upload_blob("slow.pdf", b"x")  # the function for this blob never returns
    host.wait_for_notes("document", name="slow.pdf")
    host.kill()
    container.upload_blob("while-down.pdf", b"x")
    host.start()
    host.wait_for_notes("document", 2, name="slow.pdf")
    host.wait_for_notes("document", name="while-down.pdf")
    host.kill()


def sample_settings_of(host: HostProcess) -> dict[str, str]:
    names = sample_settings("")
    return {name: value for name, value in host.environment.items() if name in names}


def _start_fails(*arguments: str, environment: dict[str, str] | None = None) -> tuple[int, str]:
    command = [sys.executable, "-m", "local.host", *arguments]
    settings = {"PYTHONPATH": str(ROOT), "PATH": "", **(environment or {})}
    done = subprocess.run(
        command, cwd=SAMPLE_APP, env=settings, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stderr.strip()


def test_busy_port_is_one_line_that_names_the_setting(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        code, text = _start_fails("--port", str(port), "--data", str(tmp_path))
    assert code == 2
    expected = (
        f"port {port} is in use on 127.0.0.1; choose another with --port or the setting LOCAL_HOST_PORT"
    )
    assert text == f"local.host: {expected}"


def test_missing_connection_is_one_line_that_names_the_setting(tmp_path: Path) -> None:
    names = dict.fromkeys(("DOCUMENTS", "INBOX", "LOCAL_BLOB_DELETED_QUEUE"), "x")
    code, text = _start_fails("--port", str(find_free_port()), "--data", str(tmp_path), environment=names)
    assert code == 2
    assert text.startswith("local.host: setting DocumentsStorage is not set")


def test_app_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    port = str(find_free_port())
    code, text = _start_fails("--port", port, "--data", str(tmp_path), "--app", "no_such_app")
    assert code == 2
    assert text.startswith("local.host: there is no module no_such_app")
