"""A short variant of `make fuzz`: responses to requests that the API description allows or forbids."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.nightly,
    pytest.mark.timeout(300),
    pytest.mark.attack("request fuzzing"),
]
CASES = 200


def test_requests_made_from_the_description_are_answered_as_described(tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    command = [sys.executable, "-m", "evals.fuzz", "--cases", str(CASES), "--seed", "7", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["cases"] == CASES
    stateful = report["stateful"]
    assert stateful["scenarios"] == CASES // 50
    assert stateful["followed_links"] > 2 * stateful["scenarios"]
    assert (report["server_errors"], report["mismatches"], report["no_answer"]) == (0, 0, 0)
    assert len(report["calls"]) - report["without_identity"] == 6, (
        "every call, and each but the open ones as nobody"
    )
    assert {"200", "201", "202", "400", "403", "404"} <= set(report["statuses"])
    assert 0.3 < report["valid_cases"] / CASES < 0.9
