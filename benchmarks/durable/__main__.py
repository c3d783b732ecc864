"""What the durable executor costs per activity: `python -m benchmarks.durable --out report.json`.

Baseline in the same run: bare awaits of the same functions, with the same limit on parallel ones. The
difference divided by the number of activities is the overhead; it stops at the client's "Completed".
"""

import argparse
import asyncio
import json
import logging
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import azure.durable_functions as df
import uvicorn
from azure.durable_functions.models.utils import http_utils
from starlette.applications import Starlette
from starlette.routing import Mount

from benchmarks.durable.app import ACTIVITIES, PARALLEL, WORK_S, BenchFunctions
from local.durable.executor import DurableExecutor

COUNTS = (10, 50, 200)


@dataclass(frozen=True)
class Row:
    """Medians over the repeats. ratio: durable over bare time. sdk_share: of the durable time, 0 to 1."""

    shape: str
    activity: str
    count: int
    bare_ms: float
    durable_ms: float
    overhead_ms_per_activity: float
    ratio: float
    sdk_share: float


class Bench:
    def __init__(
        self, functions: BenchFunctions, client: df.DurableOrchestrationClient, repeats: int
    ) -> None:
        self._functions = functions
        self._client = client
        self._repeats = repeats

    async def row(self, shape: str, activity: str, count: int) -> Row:
        bare_s, durable_s, sdk_s = [], [], []
        for _ in range(self._repeats):
            bare_s.append(await _timed(lambda: _bare(shape, activity, count)))
            self._functions.reset()
            durable_s.append(await _timed(lambda: self._durable(shape, activity, count)))
            sdk_s.append(self._functions.sdk_s)
        bare, durable = statistics.median(bare_s), statistics.median(durable_s)
        return Row(
            shape=shape,
            activity=activity,
            count=count,
            bare_ms=round(bare * 1000, 2),
            durable_ms=round(durable * 1000, 1),
            overhead_ms_per_activity=round((durable - bare) * 1000 / count, 2),
            ratio=round(durable / bare, 1),
            sdk_share=round(statistics.median(sdk_s) / durable, 2),
        )

    async def _durable(self, shape: str, activity: str, count: int) -> None:
        instance_id = await self._client.start_new(shape, client_input=[activity, count])
        await self._functions.finished.wait()
        while True:
            status = await self._client.get_status(instance_id)
            if status.runtime_status is df.OrchestrationRuntimeStatus.Completed:
                break
        if status.output != sum(range(count)):
            raise RuntimeError(f"{shape} of {count} came to {status.output}")


async def _bare(shape: str, activity: str, count: int) -> None:
    function, slots = ACTIVITIES[activity], asyncio.Semaphore(PARALLEL)

    async def limited(value: int) -> int:
        async with slots:
            return await function(value)

    if shape == "sequential":
        for value in range(count):
            await limited(value)
    else:
        await asyncio.gather(*(limited(value) for value in range(count)))


async def _timed(run: Callable[[], Awaitable[None]]) -> float:
    begun_s = time.perf_counter()
    await run()
    return time.perf_counter() - begun_s


async def measure(repeats: int) -> list[Row]:
    functions = BenchFunctions()
    with tempfile.TemporaryDirectory() as folder:
        executor = DurableExecutor(
            Path(folder) / "durable.sqlite", functions, max_parallel_activities=PARALLEL
        )
        await executor.start()
        app = Starlette(routes=[Mount("/durabletask", routes=executor.routes())])
        server = uvicorn.Server(
            uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", lifespan="off")
        )
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110  # uvicorn offers no event
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        client = df.DurableOrchestrationClient(executor.client_binding(f"http://127.0.0.1:{port}"))
        bench = Bench(functions, client, repeats)
        await bench.row("sequential", "nothing", 10)  # warms up imports and connections
        rows = []
        for activity in ACTIVITIES:
            for shape in ("sequential", "fan_out"):
                for count in COUNTS:
                    rows.append(await bench.row(shape, activity, count))
                    print(_line(rows[-1]), flush=True)
        await http_utils._close_session()
        server.should_exit = True
        await serving
        await executor.stop()
    return rows


def _line(row: Row) -> str:
    return (
        f"| {row.shape} | {row.activity} | {row.count} | {row.bare_ms} | {row.durable_ms} "
        f"| {row.overhead_ms_per_activity} | {row.ratio} | {row.sdk_share:.0%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.durable", description=__doc__)
    parser.add_argument("--out", type=Path, help="write the rows as JSON to this file")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    os.environ.setdefault("AZURE_FUNCTIONS_DURABLE_STRICT_TYPING", "1")
    print(f"`wait` takes {WORK_S * 1000:.0f} ms; {PARALLEL} activities at once; {os.cpu_count()} cores")
    print("| shape | activity | count | bare ms | durable ms | overhead ms per activity | ratio | SDK |")
    print("|---|---|---|---|---|---|---|---|")
    rows = asyncio.run(measure(arguments.repeats))
    if arguments.out is not None:
        report = {
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "rows": [asdict(row) for row in rows],
        }
        arguments.out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
