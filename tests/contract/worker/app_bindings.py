"""Describes the functions of an app as data (name, trigger, bindings), in a new process.

`python -m tests.contract.worker.app_bindings FOLDER` prints the JSON. It needs a separate process, because an
app can be indexed only once per process.
"""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT_S = 120.0
# The app doesn't start without settings. No service is contacted while it is indexed.
SETTINGS: dict[str, str] = json.loads((ROOT / "local.settings.example.json").read_text(encoding="utf-8"))[
    "Values"
]
AppBindings: TypeAlias = dict[str, dict[str, Any]]


def describe(functions: list[Any]) -> AppBindings:
    """Return the trigger type and all bindings of each function by name. The keys of bindings keep their
    order.
    """
    described = {}
    for function in functions:
        bindings = sorted(
            (json.loads(raw) for raw in function.get_raw_bindings()), key=lambda each: each["name"]
        )
        trigger = function.get_trigger().get_binding_name()
        described[function.get_function_name()] = {"trigger": trigger, "bindings": bindings}
    return dict(sorted(described.items()))


def read_app_bindings(app_folder: Path) -> AppBindings:
    """Return the description of the app whose function_app.py is in `app_folder`."""
    command = [sys.executable, "-m", "tests.contract.worker.app_bindings", str(app_folder)]
    environment = {**os.environ, **SETTINGS}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise AssertionError(f"the app cannot be indexed:\n{done.stderr[-3000:]}")
    described: AppBindings = json.loads(done.stdout)
    return described


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    app = importlib.import_module("function_app").app
    sys.stdout.write(json.dumps(describe(app.get_functions())))


if __name__ == "__main__":
    main()
