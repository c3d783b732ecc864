"""The local target of the proof kit: a separate stack with free ports, its own data folder and the local
model.
"""

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import httpx
from azure.storage.blob import BlobServiceClient

from evals.azure_proof.code import count_functions
from evals.azure_proof.evidence import Facts, Outcome, check
from evals.azure_proof.target import NotHereError
from local.azurite.server import NodeMissingError, find_node
from local.run_all.app_settings import ENDPOINT_NAMES, LOCAL_CHAT_MODEL
from local.run_all.stack import DOCUMENTS_CONTAINER, LocalStack
from local.run_all.stack_settings import FREE_PORTS, HOST, StackSettings
from samples.acl import ANNA

# Pace of a slow hosted model. An answer takes several seconds, which leaves time to restart the app
# meanwhile.
_PACE = "ttft=600,tps=15"
# Limits as in a deployment; `make run` raises them. The time budget allows for a busy machine.
_LIMITS = {"RATE_LIMIT_PER_MINUTE": "60", "MAX_TOTAL_LATENCY_MS": "90000", "MODEL_TIMEOUT_FACTOR": "3"}


class LocalTarget:
    """The app on this machine. See `Target` for the operations."""

    kind: Literal["local"] = "local"

    def __init__(self, data: Path, root: Path) -> None:
        self._data = data
        self._root = root
        environment = {name: value for name, value in os.environ.items() if name not in ENDPOINT_NAMES}
        self._stack = LocalStack(StackSettings(FREE_PORTS, data), _LIMITS, environment)
        self._is_started = False

    @property
    def url(self) -> str:
        return self._stack.base_url

    def prerequisites(self) -> Outcome:
        """Check that Python and Node are available."""
        try:
            node = subprocess.run(
                [*find_node().node, "--version"], capture_output=True, text=True, check=True
            ).stdout.strip()
        except (NodeMissingError, subprocess.CalledProcessError) as missing:
            return Outcome(checks=(check("Node 20 or newer", missing, passed=False),))
        version = sys.version.split()[0]
        return Outcome(
            checks=(
                check("Python 3.11 or newer", version, passed=sys.version_info >= (3, 11)),
                check("Node 20 or newer", node, passed=True),
            )
        )

    def deploy(self) -> Outcome:
        """Start the stack if it isn't running."""
        if not self._is_started:
            self._stack.start()
            self._is_started = True
        health = httpx.get(f"{self.url}/api/health", timeout=60)
        return Outcome(
            checks=(check("the app answers on /api/health", health.text, passed=health.is_success),)
        )

    def facts(self) -> Facts:
        """Return the versions of the programs on this machine."""
        settings = self._stack.app_settings
        models = f"{settings.get('CHAT_MODEL')} and {settings.get('EMBEDDING_MODEL')}: stand-ins"
        return Facts(
            target="local",
            url=self.url,
            region=f"one machine: {platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            models=models,
            versions={"Python": sys.version.split()[0]},
        )

    def token(self) -> str:
        """Return a development token of the sample user Anna."""
        return self._stack.token(ANNA)

    def write_blob(self, name: str, path: Path) -> None:
        """Write a file to the documents container of the storage emulator."""
        with self._storage() as service:
            client = service.get_blob_client(DOCUMENTS_CONTAINER, name)
            client.upload_blob(path.read_bytes(), overwrite=True)

    def delete_blob(self, name: str) -> None:
        """Delete a file from the documents container of the storage emulator."""
        with self._storage() as service:
            service.get_blob_client(DOCUMENTS_CONTAINER, name).delete_blob()

    @contextmanager
    def slow_model(self) -> Iterator[None]:
        """Make the local model as slow as a slow hosted one until the block exits."""
        self._stack.stop_host()
        self._stack.start_host({"CHAT_MODEL": f"{LOCAL_CHAT_MODEL}@{_PACE}"})
        try:
            yield
        finally:
            self._stack.stop_host()
            self._stack.start_host({"CHAT_MODEL": LOCAL_CHAT_MODEL})

    def restart(self) -> None:
        """Kill the host while a question is in progress, and start it again."""
        self._stack.kill_host()
        self._stack.start_host()

    def cool_down(self) -> None:
        """Restart the host, so that it has to load the app again."""
        self._stack.stop_host()
        self._stack.start_host()

    def functions(self) -> tuple[int, int]:
        """Return the number of functions in the host's log, and the number in this checkout."""
        log = (self._data / "functions-host.log").read_text(encoding="utf-8", errors="replace")
        count = int(re.findall(r"\((\d+) functions\)", log)[-1])
        return count, count_functions(self._root)

    def hybrid_scores(self, index: str, question: str) -> list[dict[str, Any]]:
        """Raise `NotHereError`, because the local search server doesn't support `debug`."""
        raise NotHereError("The local search server does not return subscores; Azure AI Search does.")

    def bill_command(self) -> str:
        """Return "", because a local stack costs nothing."""
        return ""

    def teardown(self) -> Outcome:
        """Stop the stack and delete its data folder."""
        port = self._stack.ports.http
        self._stack.stop()
        self._is_started = False
        shutil.rmtree(self._data, ignore_errors=True)
        with socket.socket() as probe:
            is_free = probe.connect_ex((HOST, port)) != 0
        return Outcome(
            checks=(
                check("nothing listens on the app's port", f"port {port} is free: {is_free}", passed=is_free),
                check("the data is gone", self._data.name, passed=not self._data.exists()),
            )
        )

    def stop(self) -> None:
        """Stop the stack, but keep its data so that steps can be repeated."""
        self._stack.stop()
        self._is_started = False

    def _storage(self) -> BlobServiceClient:
        return BlobServiceClient.from_connection_string(self._stack.storage_connection_string)
