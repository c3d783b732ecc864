"""A client of the Bicep compiler, which runs as one process (`bicep jsonrpc --stdio`) for all calls of a
session.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

from tests.architecture.source_tree import ROOT

SUBSCRIPTION = "33333333-3333-3333-3333-333333333333"
TENANT = "22222222-2222-2222-2222-222222222222"
NOT_FOUND = (
    "Bicep's compiler is neither in BICEP, nor on PATH, nor in ../shared/tools: "
    "az bicep install --version v0.49.2, then BICEP=~/.azure/bin/bicep"
)


def find_compiler() -> Path | None:
    """Return the path of the Bicep compiler: from BICEP, from PATH, or next to the repository. Return None if
    it is not installed.
    """
    executable = os.environ.get("BICEP") or shutil.which("bicep")
    path = Path(executable) if executable else ROOT.parent / "shared/tools/bicep"
    return path if path.is_file() else None


class Compiler:
    """The running compiler. Calls are made sequentially; each result is the JSON of the
    compiler's response.
    """

    def __init__(self, path: Path) -> None:
        environment = {**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
        self._process = subprocess.Popen(
            [path, "jsonrpc", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def compile(self, path: Path) -> dict[str, Any]:
        """Compile a file. Return `success`, `diagnostics`, and the template as text in `contents`."""
        return self._call("compile", path=str(path))

    def predict(self, parameters: Path, group: str | None) -> dict[str, Any]:
        """Return what a deployment with these parameters would create: `predictedResources`, `outputs` and
        `diagnostics`.

        `group` is the target resource group, or None for a deployment to the subscription.
        """
        scope = {
            "tenantId": TENANT,
            "subscriptionId": SUBSCRIPTION,
            "resourceGroup": group,
            "location": "swedencentral",
            "deploymentName": "main",
        }
        answer = self._call("getSnapshot", path=str(parameters), metadata=scope, externalInputs=None)
        snapshot: dict[str, Any] = json.loads(answer["snapshot"])
        return snapshot

    def graph(self, path: Path) -> dict[str, set[str]]:
        """Return the names of the modules or resources that must be created before each module or resource of
        a file.
        """
        answer = self._call("getDeploymentGraph", path=str(path))
        before: dict[str, set[str]] = {node["name"]: set() for node in answer["nodes"]}
        for edge in answer["edges"]:
            before[edge["source"]].add(edge["target"])
        return before

    def _call(self, method: str, **parameters: object) -> dict[str, Any]:
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": f"bicep/{method}", "params": [parameters]})
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"Content-Length: {len(request.encode())}\r\n\r\n{request}".encode())
        self._process.stdin.flush()
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        answer = json.loads(self._process.stdout.read(length))
        assert "result" in answer, f"{method} {parameters}: {answer}"
        result: dict[str, Any] = answer["result"]
        return result
