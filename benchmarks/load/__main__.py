"""`python -m benchmarks.load --users 50 --seconds 120 --out report.json`: measure the app with many
concurrent users.

Starts a stack whose model has the pace of a hosted one. First a single user, then all users ask, read the
answer, pause and ask again; some disconnect and resume, some cancel. The exit code is 1 for any fault, or if
the memory of host or worker keeps growing. Times are reported but have no limit.
"""

import argparse
import asyncio
import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from benchmarks.load import report
from benchmarks.load.crowd import person, turns
from benchmarks.load.visitor import SILENCE_S, Visitor
from benchmarks.load.watching import Watch
from local.run_all import process_record
from local.run_all.app_settings import ENDPOINT_NAMES, LOCAL_CHAT_MODEL
from local.run_all.demo import bring_samples
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import FREE_PORTS, StackSettings

PACE = "ttft=500,tps=65"
"""First token after half a second, then 65 tokens a second, as measured for small hosted models."""
# Limits as in a deployment. No simulated user reaches them, but checking them takes time.
LIMITS = {"RATE_LIMIT_PER_MINUTE": "60", "MAX_CONCURRENT_RUNS": "5"}
# Mean pause of the single user, in seconds. With longer pauses, the phase would have too few questions.
ALONE_PAUSE_S = 1.0
WARM_UP_QUESTIONS = 2


def main() -> int:
    """Run the benchmark, print the result and write the report. Return 1 if there were faults or the memory
    grew too fast.
    """
    arguments = _arguments()
    environment = {name: value for name, value in os.environ.items() if name not in ENDPOINT_NAMES}
    model = f"{LOCAL_CHAT_MODEL}@{arguments.pace}" if arguments.pace else LOCAL_CHAT_MODEL
    with (
        tempfile.TemporaryDirectory(prefix="groundwork-load-", ignore_cleanup_errors=True) as folder,
        LocalStack(StackSettings(FREE_PORTS, Path(folder)), LIMITS, environment) as stack,
    ):
        bring_samples(stack, lambda done, whole, current: None)
        stack.kill_host()
        stack.start_host({"CHAT_MODEL": model})
        results = asyncio.run(measure(stack, arguments))
    results |= {"model": model, "pause_s": arguments.pause, "seed": arguments.seed}
    arguments.out.write_text(json.dumps(results, indent=1) + "\n")
    print(report.as_text(results["alone"], results["crowd"]))
    grown = report.growth(results["crowd"])
    for line in (*results["alone"]["faults"], *results["crowd"]["faults"], *grown):
        print(f"FAULT: {line}")
    return 1 if grown or results["alone"]["errors"] or results["crowd"]["errors"] else 0


async def measure(stack: LocalStack, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure a single user, then all users, on the same host."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    options: dict[str, Any] = {"base_url": stack.base_url, "limits": limits, "timeout": SILENCE_S}
    async with httpx.AsyncClient(trust_env=False, **options) as client:
        watch = Watch(_pids(stack))
        watching = asyncio.create_task(watch.keep(client))
        await _warm_up(stack, client)
        people = functools.partial(_visitor, stack, client, arguments.seed)
        lonely = people(arguments.users, min(arguments.pause, ALONE_PAUSE_S))
        alone = await _phase([lonely], watch, arguments.alone, 0.0)
        crowd = [people(number, arguments.pause) for number in range(arguments.users)]
        crowd_told = await _phase(crowd, watch, arguments.seconds, arguments.pause)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    timeline = [{"at": round(one.at - watch.samples[0].at, 1), **one.rss_mb} for one in watch.samples]
    return {"machine": report.machine(), "alone": alone, "crowd": crowd_told, "memory_mb": timeline}


async def _warm_up(stack: LocalStack, client: httpx.AsyncClient) -> None:
    """Ask a few questions before the measurement, to open connections and trigger lazy imports."""
    visitor = Visitor(client, stack.token(person(0)), turns(0, 0), 0.0)
    for _ in range(WARM_UP_QUESTIONS):
        await visitor.ask()


def _visitor(stack: LocalStack, client: httpx.AsyncClient, seed: int, number: int, pause_s: float) -> Visitor:
    return Visitor(client, stack.token(person(number)), turns(seed, number), pause_s)


async def _phase(
    visitors: Sequence[Visitor], watch: Watch, seconds: float, arrival_s: float
) -> dict[str, Any]:
    """Run one phase and return its summary. The users arrive at regular intervals over `arrival_s`
    seconds.
    """
    began = time.monotonic()
    await asyncio.gather(
        *(
            visitor.stay(began + seconds, arrival_s * place / len(visitors))
            for place, visitor in enumerate(visitors)
        )
    )
    questions = [one for visitor in visitors for one in visitor.asked]
    return report.phase(questions, watch, began, time.monotonic(), len(visitors))


def _pids(stack: LocalStack) -> Mapping[str, int]:
    recorded = process_record.read(stack.data)
    pids = {name: pid for name, (pid, _) in recorded.items() if name != process_record.LAUNCHER}
    return {**pids, report.WORKER: stack.worker_pid}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="Duration of the phase with all users, in seconds."
    )
    parser.add_argument(
        "--alone", type=float, default=60.0, help="Duration of the phase with a single user, in seconds."
    )
    parser.add_argument(
        "--pause",
        type=float,
        default=10.0,
        help="Mean pause between an answer and the next question, in seconds.",
    )
    parser.add_argument(
        "--pace",
        default=PACE,
        help="Knobs of the local model (default: %(default)s). With an empty text, it replies without delay.",
    )
    parser.add_argument("--seed", type=int, default=20251121)
    parser.add_argument("--out", type=Path, default=Path("report.json"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
