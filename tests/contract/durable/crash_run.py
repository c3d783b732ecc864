"""Kills the crash app with SIGKILL at random moments, starts it again, and looks at what came out."""

import asyncio
import os
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import azure.durable_functions as df
from azure.durable_functions.models.utils import http_utils

from local.durable.client_binding import client_binding_json
from tests.conftest import find_free_port
from tests.contract.durable.crash_app import ACTIVITIES_PER_CHILD, ACTIVITIES_PER_ROOT, expected

_HANG_GUARD_S = 120.0
_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class CrashReport:
    """outputs: by root instance. executions: by activity key. completions: TaskCompleted by instance."""

    outputs: dict[str, Any]
    executions: Counter[str]
    completions: dict[str, int]
    kills: int


class CrashRun:
    """One store, one process at a time."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._random = random.Random(seed)
        self._port = find_free_port()
        self._base_url = f"http://127.0.0.1:{self._port}"
        self._client = df.DurableOrchestrationClient(client_binding_json(self._base_url, "local"))
        self._process: subprocess.Popen[bytes] | None = None

    async def run(self, kills: int) -> CrashReport:
        """Start a root, kill, restart, as often as asked; then let everything end."""
        roots = [f"root-{number}" for number in range(kills + 1)]
        try:
            for number, root in enumerate(roots):
                await self._start_process()
                starting = asyncio.create_task(self._start_root(root, number))
                if number < kills:
                    await asyncio.sleep(self._random.uniform(0.0, 0.35))
                    self._kill()
                    await asyncio.gather(starting, return_exceptions=True)
                else:
                    await starting
            # A root whose start was cut off by a kill has no answer to rely on: start it again.
            for number, root in enumerate(roots):
                await self._start_root(root, number)
            outputs = {root: await self._output(root) for root in roots}
            return await self._report(outputs, kills)
        finally:
            self._kill()
            await http_utils._close_session()

    async def _start_process(self) -> None:
        command = [
            sys.executable, "-m", "tests.contract.durable.crash_app",
            str(self._port), str(self._folder / "durable.sqlite"), str(self._folder / "log"),
        ]  # fmt: skip
        environment = {**os.environ, "AZURE_FUNCTIONS_DURABLE_STRICT_TYPING": "1"}
        self._process = subprocess.Popen(command, cwd=_ROOT, env=environment)  # noqa: ASYNC220  # returns at once
        give_up_at = time.monotonic() + _HANG_GUARD_S
        while time.monotonic() < give_up_at:
            if self._process.poll() is not None:
                raise AssertionError("the crash app ended by itself")
            try:
                await self._client.get_status("nobody")
            except aiohttp.ClientError:
                await asyncio.sleep(0.02)
            else:
                return
        raise AssertionError("the crash app does not answer")

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def _start_root(self, root: str, number: int) -> None:
        if await self._client.get_status(root):
            return
        await self._client.start_new("root", root, {"seed": number, "results": []})

    async def _output(self, root: str) -> Any:
        give_up_at = time.monotonic() + _HANG_GUARD_S
        while time.monotonic() < give_up_at:
            status = await self._client.get_status(root)
            if status.runtime_status is not None and status.runtime_status.value not in (
                "Running",
                "Pending",
            ):
                return status.output
            await asyncio.sleep(0.05)
        raise AssertionError(f"{root} did not end")

    async def _report(self, outputs: dict[str, Any], kills: int) -> CrashReport:
        completions = {}
        for status in await self._client.get_status_by(instance_id_prefix="root-"):
            shown = await self._client.get_status(status.instance_id, show_history=True)
            kinds = [event["EventType"] for event in shown.historyEvents]
            completions[status.instance_id] = kinds.count("TaskCompleted")
        executions = Counter((self._folder / "log").read_text().split())
        return CrashReport(outputs, executions, completions, kills)


def check(report: CrashReport, max_parallel: int = 16) -> None:
    """Every result right; every activity at least once, its result recorded exactly once."""
    roots = list(report.outputs)
    assert report.outputs == {root: expected(number) for number, root in enumerate(roots)}
    assert len(report.executions) == ACTIVITIES_PER_ROOT * len(roots)
    repeated = report.executions.total() - len(report.executions)
    assert repeated <= report.kills * max_parallel
    children = {key: count for key, count in report.completions.items() if ":" in key}
    assert set(children.values()) == {ACTIVITIES_PER_CHILD}
