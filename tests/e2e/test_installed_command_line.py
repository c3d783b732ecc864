"""The command line installed by `pipx install .`, away from the checkout."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from local.run_all.stack import LocalStack
from tests.architecture.source_tree import ROOT, tracked_files

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    for path in tracked_files():
        if path.parts[0] == "cli" or len(path.parts) == 1:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / path)
    return folder


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def installed(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the command line into a separate folder, together with the dependencies of the tests, and
    return the folder.
    """
    target = tmp_path_factory.mktemp("installed")
    before = files_in(checkout)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, "."],
        cwd=checkout,
        check=True,
        timeout=240,
    )
    # A deployment would include files that the build left in the checkout.
    assert files_in(checkout) == before
    return target


def groundwork(
    installed: Path, *arguments: str, folder: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GROUNDWORK_")}
    return subprocess.run(
        [sys.executable, installed / "bin/groundwork", *arguments],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(installed), "XDG_CONFIG_HOME": str(folder / "config"), **more},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_installing_leaves_nothing_in_the_checkout(installed: Path, tmp_path: Path) -> None:
    done = groundwork(installed, "--version", folder=tmp_path)
    assert done.stdout.startswith("groundwork "), done.stderr


def test_the_installed_command_line_finds_the_stack_of_this_folder(
    installed: Path, stack: LocalStack, tmp_path: Path
) -> None:
    (tmp_path / ".local").mkdir()
    (tmp_path / ".local/data").symlink_to(stack.data)
    below, elsewhere = tmp_path / "below", tmp_path / "elsewhere"
    for folder in (below, elsewhere):
        folder.mkdir()
    config = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    login = ("login", "--dev-user", "anna", "--url", stack.base_url)
    for folder in (tmp_path, below):
        done = groundwork(installed, *login, folder=folder, **config)
        assert "Signed in" in done.stdout, done.stderr
    who = groundwork(installed, "whoami", folder=elsewhere, **config)
    assert "Anna Bergqvist" in who.stdout, who.stderr


def test_where_there_is_no_stack_the_command_line_says_where_to_run_it(
    installed: Path, tmp_path: Path
) -> None:
    refused = groundwork(installed, "login", "--dev-user", "anna", folder=tmp_path)
    assert refused.returncode == 2
    assert f"There are no tokens in {tmp_path}/.local/data/tokens.json." in refused.stderr
    assert "run this command in the same folder" in refused.stderr
