"""Tests for the set-up script: it refuses unusable environments and uses hashes to skip completed work."""

import sys
from pathlib import Path

import pytest

from scripts import set_up


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project folder with all files of a completed set-up."""
    for name in ("local.txt", "dev.txt", "embedding.txt", "node.txt"):
        (tmp_path / "requirements").mkdir(exist_ok=True)
        (tmp_path / "requirements" / name).write_text(f"{name}==1\n")
    (tmp_path / "local" / "azurite").mkdir(parents=True)
    (tmp_path / "local" / "azurite" / "package-lock.json").write_text("{}")
    (tmp_path / ".local" / "node").mkdir(parents=True)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").touch()
    monkeypatch.setattr(set_up, "ROOT", tmp_path)
    monkeypatch.setattr(set_up, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(set_up, "VENV_PYTHON", tmp_path / ".venv" / "bin" / "python")
    monkeypatch.setattr(set_up, "REQUIREMENTS", tmp_path / "requirements")
    monkeypatch.setattr(set_up, "NODE_PREFIX", tmp_path / ".local" / "node")
    return tmp_path


def test_an_old_python_is_refused_in_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["set_up.py", "run"])
    monkeypatch.setattr(sys, "version_info", (3, 10, 12))
    assert set_up.main() == 1
    message = capsys.readouterr().err
    assert "needs Python 3.11 or later" in message
    assert "make PYTHON=" in message
    assert message.count("\n") == 1


def test_the_tests_packages_are_enough_to_run(project: Path) -> None:
    set_up.stamp("test").write_text(set_up.fingerprint("test"))
    assert set_up.is_current("test")
    assert set_up.is_current("run")


def test_the_packages_to_run_are_not_enough_to_test(project: Path) -> None:
    set_up.stamp("run").write_text(set_up.fingerprint("run"))
    assert set_up.is_current("run")
    assert not set_up.is_current("test")


@pytest.mark.parametrize(
    "changed", ["requirements/dev.txt", "requirements/embedding.txt", "local/azurite/package-lock.json"]
)
def test_a_changed_lock_file_asks_for_a_new_set_up(project: Path, changed: str) -> None:
    set_up.stamp("test").write_text(set_up.fingerprint("test"))
    (project / changed).write_text("something else")
    assert not set_up.is_current("test")


def test_a_removed_environment_asks_for_a_new_set_up(project: Path) -> None:
    set_up.stamp("test").write_text(set_up.fingerprint("test"))
    (project / ".venv" / "bin" / "python").unlink()
    assert not set_up.is_current("test")


def test_a_failing_step_ends_the_set_up_and_is_named() -> None:
    with pytest.raises(SystemExit, match="failed with exit code 3"):
        set_up.call(sys.executable, "-c", "raise SystemExit(3)")
