"""Installs the npm packages for the Teams channel, locked in infra/teams, into .local/teams-tools."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from local.azurite.server import NodeMissingError, find_node

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "infra" / "teams"
PREFIX = ROOT / ".local" / "teams-tools"
MANIFEST_VERSION = "1.24"
_FILES = ("package.json", "package-lock.json")
_INSTALL_TIMEOUT_S = 600.0


class TeamsToolsError(RuntimeError):
    """Error raised if npm failed. The message contains the end of its output."""


def install_teams_tools(prefix: Path = PREFIX) -> Path:
    """Install the locked packages below `prefix` unless they are already installed, and return `prefix`.

    Parallel callers wait for the first one.

    Raises:
        TeamsToolsError: Node is missing, or npm failed.
    """
    if _is_installed(prefix):
        return prefix
    prefix.mkdir(parents=True, exist_ok=True)
    with FileLock(prefix / ".install.lock", timeout=_INSTALL_TIMEOUT_S):
        if not _is_installed(prefix):
            _npm_ci(prefix)
    return prefix


def manifest_schema(prefix: Path = PREFIX) -> Path:
    """Return the path of Microsoft's JSON schema for the version of the manifest."""
    schemas = prefix / "node_modules" / "@microsoft" / "app-manifest" / "build" / "json-schemas" / "teams"
    return schemas / f"v{MANIFEST_VERSION}" / "MicrosoftTeams.schema.json"


def _is_installed(prefix: Path) -> bool:
    # npm writes this lock file last, so it is missing after an interrupted installation.
    finished = prefix / "node_modules" / ".package-lock.json"
    copied = prefix / "package-lock.json"
    if not (finished.is_file() and copied.is_file()):
        return False
    locked = json.loads((PROJECT / "package-lock.json").read_text(encoding="utf-8"))
    return bool(json.loads(copied.read_text(encoding="utf-8")) == locked)


def _npm_ci(prefix: Path) -> None:
    for name in _FILES:
        shutil.copyfile(PROJECT / name, prefix / name)
    try:
        npm = find_node().npm
    except NodeMissingError as missing:
        raise TeamsToolsError(str(missing)) from None
    # Install scripts are disabled, because no package needs one and none may download a browser.
    command = [*npm, "ci", "--prefix", str(prefix), "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(
        command, cwd=prefix, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise TeamsToolsError(f"npm could not install the packages for Teams:\n{done.stderr[-2000:]}")


if __name__ == "__main__":
    try:
        print(install_teams_tools())
    except TeamsToolsError as failed:
        sys.exit(str(failed))
