"""Tests for the structure of the journey report, independent of its figures."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_both_journeys_are_counted_and_listed(tmp_path: Path) -> None:
    # Runs in a separate process because the measurement installs a profiler and its own services.
    out = tmp_path / "report.json"
    command = [sys.executable, "-m", "benchmarks.journeys", "--list", "--out", str(out)]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text(encoding="utf-8"))
    assert list(report) == ["question", "markdown"]
    for figures in report.values():
        assert list(figures) == ["files", "functions", "crossings"]
        assert 10 < figures["files"] < figures["functions"] < figures["crossings"]
    # The journey of a question, from the trigger to the last activity, comes before that of a document.
    question_files, _, markdown_files = done.stdout.partition("\nmarkdown: ")
    assert "functions/chat.py" in question_files
    assert "functions/ingest.py" in markdown_files
    for orchestration, listed in (("run_agent", question_files), ("ingest_document", markdown_files)):
        assert f"orchestrations/{orchestration}.py" in listed
    assert "parser" in markdown_files
