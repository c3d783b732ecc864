"""The official worker library accepts the app, sees the same bindings and runs functions. Requires Python
3.13.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.contract.worker.app_bindings import ROOT, SETTINGS, read_app_bindings
from tests.contract.worker.python313 import find_python313, worker_python

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.timeout(900)]
PROBE = Path(__file__).with_name("worker_probe.py")
SAMPLE_APP = ROOT / "tests" / "contract" / "host" / "sample_app"


@pytest.fixture(scope="module")
def python() -> str:
    python_path = find_python313()
    if python_path is None:
        pytest.skip("no Python 3.13 on this machine: the worker library needs it")
    return worker_python(python_path)


def probe(python: str, folder: Path, calls: list[dict[str, Any]] | None = None, **environment: str) -> Any:
    """Return the worker's report on an app; `calls` are invocations to make."""
    done = subprocess.run(
        [python, str(PROBE), str(folder), json.dumps(calls or [])],
        cwd=folder,
        env={**os.environ, **SETTINGS, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("PROBE ")]
    assert lines, done.stderr[-3000:]
    return json.loads(lines[-1].removeprefix("PROBE "))


@pytest.fixture(scope="module", params=[ROOT, SAMPLE_APP], ids=["the app", "the host's sample app"])
def loaded(python: str, request: pytest.FixtureRequest) -> tuple[Path, Any]:
    """Return the folder of an app, and the worker's report on it."""
    return request.param, probe(python, request.param)


def test_worker_loads_every_function_with_the_same_bindings(loaded: tuple[Path, Any]) -> None:
    folder, report = loaded
    assert report["init"] == "success"
    assert "HttpUri" in report["capabilities"]  # response streaming is enabled
    expected = read_app_bindings(folder)
    assert set(report["functions"]) == set(expected)
    for name, function in report["functions"].items():
        assert function["loaded"], name
        assert _plain(function["bindings"]) == _plain(expected[name]["bindings"]), name


def test_blob_triggers_receive_events_and_never_the_content(loaded: tuple[Path, Any]) -> None:
    _, report = loaded
    bindings = [
        binding
        for function in report["functions"].values()
        for binding in function["bindings"]
        if binding["type"] == "blobTrigger"
    ]
    assert {binding["source"] for binding in bindings} == {"EventGrid"}
    deferred = [binding.get("properties", {}).get("SupportsDeferredBinding", False) for binding in bindings]
    assert all(deferred)


def test_worker_runs_a_streaming_http_function_and_a_deferred_blob_trigger(
    python: str, tmp_path: Path
) -> None:
    place = {"Connection": "DocumentsStorage", "ContainerName": "documents", "BlobName": "a/b.pdf"}
    http = {"path": "/api/echo/bob", "params": {"name": "bob"}, "body": "hello"}
    calls = [
        {"function": "name_echo", "parameter": "req", "http": http},
        {"function": "on_document", "parameter": "document", "model_binding_data": place},
    ]
    notes = tmp_path / "notes.jsonl"
    report = probe(python, SAMPLE_APP, calls, SAMPLE_NOTES=str(notes))
    assert [call["error"] for call in report["calls"]] == [None, None]
    assert json.loads(report["calls"][0]["body"])["name"] == "bob"
    note = json.loads(notes.read_text(encoding="utf-8"))
    assert note == {
        "kind": "document",
        "name": "a/b.pdf",
        "container": "documents",
        "connection": "DocumentsStorage",
    }


def _plain(bindings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return bindings in the order of names, without the worker's mark for SDK types and without unset
    members.
    """
    plain_bindings = [
        {key: value for key, value in binding.items() if key != "properties" and value is not None}
        for binding in bindings
    ]
    return sorted(plain_bindings, key=lambda binding: str(binding["name"]))
