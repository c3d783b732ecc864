"""The example route of docs/extend.md is applied to a checkout in three files, where its tests pass."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tests.documented import marked_blocks

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(900)]  # starts a second stack

CHANGE = marked_blocks("docs/extend.md")["route"]
TESTS = (
    "tests/architecture/test_docs.py",
    "tests/unit/functions/test_openapi.py",
    "tests/e2e/access/test_routes.py::test_a_route_gives_what_the_oracle_says[GET memory/switch]",
)
LINKED = (".venv", "node_modules")
LEFT_OUT = (".git", ".local", "__pycache__")


@pytest.fixture(name="checkout")
def make_checkout(tmp_path: Path) -> Path:
    def ignored(folder: str, names: list[str]) -> set[str]:
        linked = {name for name in names if name in LINKED}
        target = tmp_path / "checkout" / Path(folder).relative_to(ROOT)
        for name in linked:
            target.mkdir(parents=True, exist_ok=True)
            (target / name).symlink_to((Path(folder) / name).resolve())
        return linked | {name for name in names if name.endswith("_cache") or name in LEFT_OUT}

    shutil.copytree(ROOT, tmp_path / "checkout", ignore=ignored, symlinks=True, dirs_exist_ok=True)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "checkout", check=True)  # tests list files with git
    return tmp_path / "checkout"


def test_a_new_route_takes_three_files_and_passes_its_tests(checkout: Path) -> None:
    assert len(re.findall(r"^diff --git ", CHANGE, re.MULTILINE)) == 3
    applied = subprocess.run(
        ["git", "apply", "-"], cwd=checkout, input=CHANGE, text=True, capture_output=True, check=False
    )
    assert applied.returncode == 0, applied.stderr
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout[-5000:]
