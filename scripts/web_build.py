"""`python -m scripts.web_build`: build the web page into web/dist if it is outdated.

npm installs what web/package-lock.json pins, without install scripts; esbuild bundles. A stamp contains a
hash of the inputs.
"""

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from local.azurite.server import NodeMissingError, find_node

WEB = Path(__file__).resolve().parent.parent / "web"
_TIMEOUT_S = (
    600.0  # limit for a build, which takes 4 s with a fast connection, and for waiting for a concurrent build
)


class WebBuildError(RuntimeError):
    """Error raised if npm or esbuild failed. The message contains the end of its output."""


def build(*, force: bool = False) -> None:
    """Build web/dist if it is outdated, or always with `force`. Concurrent callers wait for the first one.

    Raises:
        NodeMissingError: Node is missing.
        WebBuildError: npm or esbuild failed.
    """
    stamp = WEB / "dist" / ".stamp"
    with FileLock(WEB / ".build.lock", timeout=_TIMEOUT_S):
        digest = _hash_of(_sources())
        if force or not stamp.is_file() or stamp.read_text() != digest:
            install_packages()
            _call(*find_node().node, "build.mjs")
            stamp.write_text(digest)


def install_packages() -> None:
    """Install the packages of web/package-lock.json if web/node_modules differs from it."""
    stamp = WEB / "node_modules" / ".stamp"
    digest = _hash_of([WEB / "package-lock.json"])
    if not stamp.is_file() or stamp.read_text() != digest:
        _call(*find_node().npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
        stamp.write_text(digest)


def _sources() -> list[Path]:
    files = [WEB / "package-lock.json", WEB / "build.mjs"]
    return files + sorted(path for path in (WEB / "src").rglob("*") if path.is_file())


def _hash_of(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.relative_to(WEB).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _call(*command: str) -> None:
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise WebBuildError(f"{command[-1]} failed:\n{(done.stderr or done.stdout)[-2000:]}")


def main() -> int:
    """Build the page and return the exit code: 1 if the build failed, in which case the API works without the
    page.
    """
    parser = argparse.ArgumentParser(prog="python -m scripts.web_build", description=__doc__)
    parser.add_argument("--force", action="store_true", help="build the page even if it is up to date")
    try:
        build(force=parser.parse_args().force)
    except (NodeMissingError, WebBuildError) as failed:
        print(
            f"The web page was not built: {failed}\nThe API works without it; try `make web`.",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
