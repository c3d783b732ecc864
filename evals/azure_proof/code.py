"""Counts the functions that this checkout registers, in a separate process."""

import json
import os
import subprocess
import sys
from pathlib import Path

_TIMEOUT_S = 120.0
_COUNT = "from function_app import app; print(len(app.get_functions()))"


def count_functions(root: Path) -> int:
    """Return the number of functions that the app in the folder `root` registers.

    Raises:
        subprocess.CalledProcessError: the app can't be imported.
    """
    # The app doesn't start without settings, so pass some that refer to no real service.
    example = json.loads((root / "local.settings.example.json").read_text(encoding="utf-8"))["Values"]
    done = subprocess.run(
        [sys.executable, "-c", _COUNT],
        cwd=root,
        env={**os.environ, **example},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=True,
    )
    return int(done.stdout.split()[-1])
