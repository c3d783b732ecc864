"""Installs the pinned Azurite into a prefix folder, once, however many processes ask at the same moment."""

import json
import shutil
import subprocess
from pathlib import Path

from filelock import FileLock

from local.azurite.node import find_node

AZURITE_VERSION = "3.37.0"
HERE = Path(__file__).parent
INSTALL_TIMEOUT_S = 600.0  # 22 s measured on two cores with a fast line


class AzuriteInstallError(RuntimeError):
    """npm could not install Azurite; the text holds the end of npm's own output."""


def azurite_script(prefix: Path) -> Path:
    """The script that Node runs."""
    return prefix / "node_modules" / "azurite" / "dist" / "src" / "azurite.js"


def is_installed(prefix: Path) -> bool:
    """Whether the prefix holds exactly the pinned version, complete."""
    manifest = prefix / "node_modules" / "azurite" / "package.json"
    # npm writes this file last: without it an installation was interrupted.
    finished = prefix / "node_modules" / ".package-lock.json"
    if not (manifest.is_file() and finished.is_file() and azurite_script(prefix).is_file()):
        return False
    return bool(json.loads(manifest.read_text(encoding="utf-8")).get("version") == AZURITE_VERSION)


def install(prefix: Path) -> Path:
    """Make sure that the pinned Azurite lies below `prefix`, from the versions in package-lock.json.

    Parallel callers wait for the first one. Returns the script to run.

    Raises:
        NodeMissingError: no Node.
        AzuriteInstallError: npm failed.
    """
    prefix = prefix.resolve()
    if is_installed(prefix):
        return azurite_script(prefix)
    prefix.mkdir(parents=True, exist_ok=True)
    with FileLock(prefix / ".install.lock", timeout=INSTALL_TIMEOUT_S):
        if not is_installed(prefix):
            _npm_ci(prefix)
    return azurite_script(prefix)


def _npm_ci(prefix: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(HERE / name, prefix / name)
    # Azurite needs none of its packages' install scripts.
    command = [*find_node().npm, "ci", "--prefix", str(prefix), "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(
        command, cwd=prefix, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise AzuriteInstallError(f"npm could not install azurite {AZURITE_VERSION}:\n{done.stderr[-2000:]}")
