"""The deployed package contains the whole app, and no generated or local files."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT, tracked_files

APP = {"LICENSE", "function_app.py", "functions", "host.json", "orchestrations", "requirements.txt", "shared"}
BUILT = ("web/dist/index.html", "web/dist/assets/page.js.br", "web/dist/version.txt")
"""What the hook before packaging makes: part of the app, and of no commit."""

OF_THIS_MACHINE = (
    ".azure/dev/.env",
    ".local/data/local.settings.json",
    ".local/data/tokens.json",
    ".venv/bin/python",
    "build/lib/cli/__init__.py",
    "groundwork.egg-info/PKG-INFO",
    "infra/teams/node_modules/x/index.js",
    "local.settings.json",
    "web/build/types.ts",
    "web/node_modules/preact/package.json",
    "shared/__pycache__/settings.cpython-312.pyc",
)


@pytest.fixture
def packaged_files(tmp_path: Path) -> list[str]:
    """Return the files that .funcignore keeps, among tracked files and some untracked files, by git's rules
    for such patterns.
    """
    shutil.copy(ROOT / ".funcignore", tmp_path / ".gitignore")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    candidates = [*map(str, tracked_files()), *BUILT, *OF_THIS_MACHINE]
    result = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        cwd=tmp_path,
        input="\n".join(candidates),
        capture_output=True,
        text=True,
        check=False,
    )
    ignored = set(result.stdout.splitlines())
    assert len(ignored) > 100
    return [name for name in candidates if name not in ignored]


def test_the_package_holds_the_app_and_nothing_else(packaged_files: list[str]) -> None:
    assert {Path(name).parts[0] for name in packaged_files} == APP | {"web"}
    assert {name for name in packaged_files if name.startswith("web/")} == set(BUILT)


def test_no_file_of_the_app_is_left_out(packaged_files: list[str]) -> None:
    app = [str(path) for path in tracked_files() if path.parts[0] in APP]
    assert [name for name in app if name not in packaged_files] == []
