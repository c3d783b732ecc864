"""A headless Chromium for tests, controlled through `browser.cjs`. Pages are identified by name, elements by
selector.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

from local.azurite.server import find_node

PATIENCE_S = 60.0  # time for an element to appear; tests pass more to `wait` for answers
PICTURES = Path(__file__).resolve().parents[3] / "build" / "teams"
_DRIVER = Path(__file__).parent / "browser.cjs"
_NAMES = ("chromium", "chromium-browser", "google-chrome")


class BrowserError(AssertionError):
    """Error raised if the page did not show or do something in time. It contains Playwright's message."""


def find_chromium() -> str | None:
    """Return the path of this machine's browser, or None."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Browser:
    """A browser with all pages of the tests. It is a context manager.

    Args:
        tools: the folder with the tools that scripts/teams_tools.py installed.
        executable: the path of Chromium.
        log: the file for errors of the driver and the browser.
    """

    def __init__(self, tools: Path, executable: str, log: Path) -> None:
        self._failures = 0
        with log.open("ab") as complaints:
            self._process = subprocess.Popen(
                [*find_node().node, str(_DRIVER), executable],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env={**os.environ, "NODE_PATH": str(tools / "node_modules")},
                text=True,
            )

    def __enter__(self) -> Self:
        self._read()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def do(self, command: str, *, within_s: float = PATIENCE_S, **arguments: Any) -> Any:
        """Run a command of browser.cjs and return its result.

        Raises:
            BrowserError: The command failed, or the page did not allow it in time.
        """
        request = {"command": command, "timeout": within_s * 1000, **arguments}
        answer = self._ask(request)
        if "error" in answer:
            PICTURES.mkdir(parents=True, exist_ok=True)
            self._failures += 1
            screenshot = PICTURES / f"failed-{self._failures}.png"
            self._ask({"command": "screenshot", "page": arguments.get("page"), "path": str(screenshot)})
            raise BrowserError(f"{answer['error']}\nThe page at that moment: {screenshot}")
        return answer["value"]

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BrowserError("The browser has exited; see its log.")
        return dict(json.loads(line))
