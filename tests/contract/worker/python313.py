"""A cached Python 3.13 environment with the official worker library and the app's requirements.

The worker library needs Python 3.13, which azure-functions 1.26 (the last version for 3.10 to 3.12) doesn't
support. This requirement is therefore replaced by its successor for 3.13. All others equal requirements.txt.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from filelock import FileLock

from tests.contract.worker.app_bindings import ROOT

WORKER_PACKAGES = ("azure-functions-runtime==1.3.0", "azure-functions==2.3.0")
REPLACED = "azure-functions=="
PIP_TIMEOUT_S = 600.0
# Modules are compiled on import, because most of the installed modules are never imported.
_QUICKLY = ("-q", "--no-compile", "--disable-pip-version-check")


def find_python313() -> str | None:
    """Return the path of a Python 3.13 that actually runs, unlike the stubs of some version managers, or
    None.
    """
    candidates = [shutil.which("python3.13")]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates += [str(path) for path in sorted(versions.glob("3.13*/bin/python3.13"), reverse=True)]
    return next((path for path in candidates if path and _runs(path)), None)


def _runs(python: str) -> bool:
    done = subprocess.run([python, "--version"], capture_output=True, text=True, timeout=30, check=False)
    return done.returncode == 0 and done.stdout.startswith("Python 3.13")


def worker_python(python313: str) -> str:
    """Return the path of the environment's interpreter. The environment is rebuilt if the requirements have
    changed.
    """
    requirements = _requirements_for_313()
    key = hashlib.sha256("\n".join((requirements, *WORKER_PACKAGES)).encode()).hexdigest()[:12]
    folder = ROOT / ".local" / f"worker-{key}"
    python = folder / "bin" / "python"
    folder.parent.mkdir(exist_ok=True)
    with FileLock(folder.with_suffix(".lock"), timeout=PIP_TIMEOUT_S):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run(python313, "-m", "venv", str(folder))
            listed = folder / "requirements.txt"
            listed.write_text(requirements, encoding="utf-8")
            _run(str(python), "-m", "pip", "install", *_QUICKLY, *WORKER_PACKAGES)
            # The file lists all packages; resolving dependencies would install a package again that this
            # environment replaces.
            _run(str(python), "-m", "pip", "install", *_QUICKLY, "--no-deps", "-r", str(listed))
            (folder / "complete").touch()
    return str(python)


def _requirements_for_313() -> str:
    lines, skipping = [], False
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith(" "):
            skipping = line.startswith(REPLACED)
        if not skipping:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
