"""The proof kit on a separate local stack: the steps of a real subscription, without azd."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source_tree import ROOT
from tests.e2e.teams.browser import find_chromium

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(1500)]
SKIPPED_HERE = {"scores"}  # the local search server does not return the parts of a score


def prove(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "evals.azure_proof", "--local", "--out", str(out), *arguments]
    environment = {**os.environ, "CHROMIUM": find_chromium() or ""}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1400, check=False
    )


def statuses(out: Path) -> dict[str, str]:
    evidence: dict[str, Any] = json.loads((out / "evidence.json").read_text())
    return {step["name"]: step["status"] for step in evidence["steps"]}


def test_a_whole_run_leaves_evidence_and_nothing_else(tmp_path: Path) -> None:
    done = prove(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    status_by_step = statuses(tmp_path)
    assert len(status_by_step) == 15
    skipped = {name for name, status in status_by_step.items() if status == "skipped"}
    assert skipped - {"screenshots"} == SKIPPED_HERE
    assert {status for name, status in status_by_step.items() if name not in skipped} == {"passed"}
    page = (tmp_path / "evidence.md").read_text()
    assert "Every step passed." in page
    assert "nothing about Azure" in page
    assert not (tmp_path / "stack").exists()


def test_a_step_is_repeated_alone(tmp_path: Path) -> None:
    for step in ("platform", "throttling"):
        done = prove(tmp_path, "--step", step)
        # Nothing was uploaded, so the throttling step finds no hits, but it must still be recorded.
        assert step in statuses(tmp_path), done.stdout + done.stderr
    assert statuses(tmp_path)["platform"] == "passed"
    assert prove(tmp_path, "--step", "teardown").returncode == 0
    assert set(statuses(tmp_path)) == {"platform", "throttling", "teardown"}
