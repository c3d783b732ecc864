"""`make teams-package` as a user calls it, checked against Microsoft's schema of the manifest."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT

pytestmark = pytest.mark.e2e

APP_ID = "11111111-2222-4333-8444-555555555555"


def build(out: Path, *more: str, app_id: str = APP_ID) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.teams_package", "--app-id", app_id]
    arguments = ["--host", "answers.contoso.com", "--out", str(out), *more]
    return subprocess.run(
        [*command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )


def test_a_package_that_teams_takes_is_written(tmp_path: Path) -> None:
    built = build(tmp_path / "deep" / "app.zip")
    assert built.returncode == 0, built.stderr
    with zipfile.ZipFile(tmp_path / "deep" / "app.zip") as package:
        assert sorted(package.namelist()) == ["color.png", "manifest.json", "outline.png"]


def test_what_the_schema_refuses_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    refused = build(
        tmp_path / "app.zip", "--name", "A name of more than thirty characters", "--version", "one"
    )
    assert refused.returncode == 1
    assert "name.short" in refused.stderr
    assert "version" in refused.stderr
    assert not (tmp_path / "app.zip").exists()
