"""The command line against the running stack."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from local.run_all.stack import ROOT, LocalStack
from samples.acl import ANNA
from tests.e2e.stack_client import pdf_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def run(
    stack: LocalStack, module: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    given = {
        "GROUNDWORK_URL": stack.base_url,
        "GROUNDWORK_TOKEN": stack.token(ANNA),
        "GROUNDWORK_HTTP_PORT": str(stack.ports.http),
        "GROUNDWORK_DATA": str(stack.data),
    }
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, **given, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("work") / "Müller's files"
    (made / "deep").mkdir(parents=True)
    (made / "ferry.pdf").write_bytes(pdf_of("Ferries", "The ferry to Ostholm leaves at 6:40 every morning."))
    (made / "deep" / "ferry.pdf").write_bytes(pdf_of("Ferries", "The ferry to Westholm leaves at noon."))
    (made / "deep" / "tool.exe").write_bytes(b"MZ")
    (made / ".hidden.txt").write_bytes(b"hidden")
    return made


def test_a_folder_is_uploaded_asked_about_and_listed(stack: LocalStack, folder: Path) -> None:
    uploaded = run(stack, "cli", "upload", str(folder), "--project", "ferries", "--json")
    outcomes = {outcome["path"]: outcome for outcome in json.loads(uploaded.stdout)}
    assert {path: outcome["status"] for path, outcome in outcomes.items()} == {
        "Müller's files/deep/ferry.pdf": "ready",
        "Müller's files/deep/tool.exe": "refused",
        "Müller's files/ferry.pdf": "ready",
    }
    assert ".exe" in outcomes["Müller's files/deep/tool.exe"]["reason"]
    assert uploaded.returncode == 1

    asked = run(stack, "cli", "ask", "When does the ferry to Ostholm leave?")
    assert asked.returncode == 0, asked.stderr
    assert "6:40" in asked.stdout
    assert "ferry.pdf, page 1 (verified)" in asked.stdout

    listed = json.loads(run(stack, "cli", "documents", "--json").stdout)
    assert [document["filename"] for document in listed if document["project_id"] == "ferries"] == [
        "ferry.pdf",
        "ferry.pdf",
    ]

    again = run(stack, "cli", "upload", str(folder / "ferry.pdf"))
    assert (again.returncode, "1 of 1 files are ready." in again.stdout) == (0, True), again.stderr


def test_an_error_says_what_to_do(stack: LocalStack) -> None:
    for environment, told in (
        ({"GROUNDWORK_TOKEN": "wrong"}, "Get a new one"),
        ({"GROUNDWORK_URL": "http://127.0.0.1:9"}, "make run"),
    ):
        failed = run(stack, "cli", "documents", **environment)
        assert failed.returncode == 2
        assert told in failed.stderr
        assert "Traceback" not in failed.stderr


def test_everything_agrees_and_make_audit_says_so(stack: LocalStack) -> None:
    audited = run(stack, "local.audit")
    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert "Everything agrees" in audited.stdout
    refused = run(stack, "cli", "audit")
    assert (refused.returncode, "admin" in refused.stderr) == (2, True)
