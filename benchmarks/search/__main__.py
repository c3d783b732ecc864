"""`python -m benchmarks.search --out report.json`: compare the local search server with SQLite FTS5 and
numpy.

Both servers contain the same blocks and answer the same SDK requests over HTTP, alternating, on the same
machine. Only the ratios within one run are meaningful.
"""

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx
import numpy as np

from benchmarks.search.clients import KEY, Clients, Measured, Scenario
from benchmarks.search.corpus import DEFINITION, INDEX, batches

BATCH = 500
START_TIMEOUT_S = 120
SHARES = (None, 0.5, 5.0, 50.0)
MODES = ("text", "vector", "hybrid")
MOST_CLIENTS = 8


@dataclass(frozen=True)
class Row:
    """The results of one scenario. `ratio` compares p50 times with one client, and throughputs with several;
    above 1, the search server is faster.
    """

    mode: str
    share: float | None
    clients: int
    cold: bool
    p50_ms: float
    p95_ms: float
    per_s: float
    baseline_p50_ms: float
    baseline_p95_ms: float
    baseline_per_s: float
    ratio: float


def main() -> None:
    arguments = _arguments()
    scenarios = [
        Scenario(mode, share, clients) for clients in (1, MOST_CLIENTS) for mode in MODES for share in SHARES
    ]
    scenarios.append(Scenario("hybrid", 5.0, 1, cold=True))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        server = _start(["local.search_server", "--data", f"{folder}/server", "--key", KEY], stack)
        baseline = _start(["benchmarks.search.baseline", "--data", f"{folder}/baseline"], stack)
        loaded = {"server": _load(server, arguments.blocks, define=True)}
        loaded["baseline"] = _load(baseline, arguments.blocks, define=False)
        print(f"{arguments.blocks} blocks loaded, in seconds: {loaded}", flush=True)
        asking_server, asking_baseline = (
            stack.enter_context(closing(Clients(one, MOST_CLIENTS))) for one in (server, baseline)
        )
        rows = []
        for scenario in scenarios:
            # Both servers are measured in turn, so that other load affects them equally.
            ours = asking_server.measure(scenario, arguments.seconds)
            rows.append(_row(scenario, ours, asking_baseline.measure(scenario, arguments.seconds)))
    _report(arguments.out, arguments.blocks, loaded, rows)


def _row(scenario: Scenario, ours: Measured, theirs: Measured) -> Row:
    p50, p95 = np.percentile(ours.latencies_ms, [50, 95])
    base50, base95 = np.percentile(theirs.latencies_ms, [50, 95])
    ratio = base50 / p50 if scenario.clients == 1 else ours.throughput_per_s / theirs.throughput_per_s
    return Row(
        **asdict(scenario),
        p50_ms=round(float(p50), 2),
        p95_ms=round(float(p95), 2),
        per_s=round(ours.throughput_per_s, 1),
        baseline_p50_ms=round(float(base50), 2),
        baseline_p95_ms=round(float(base95), 2),
        baseline_per_s=round(theirs.throughput_per_s, 1),
        ratio=round(float(ratio), 2),
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--blocks", type=int, default=100_000)
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="Duration of each scenario for each server, in seconds."
    )
    parser.add_argument("--out", type=Path, default=Path("report.json"))
    return parser.parse_args()


def _start(command: list[str], stack: ExitStack) -> str:
    """Start a server process, and return its URL once it responds. The process ends when `stack` is
    closed.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    process = subprocess.Popen([sys.executable, "-m", *command, "--port", str(port)])
    stack.callback(process.wait, timeout=60)
    stack.callback(process.terminate)
    give_up = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < give_up and process.poll() is None:
        try:
            httpx.get(endpoint + "/health")
            return endpoint
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError(f"{command[0]} did not start")


def _load(endpoint: str, count: int, *, define: bool) -> float:
    """Upload the generated blocks. Return the seconds spent in requests, without the time to generate the
    blocks.

    Uses plain HTTP, because the SDK's serialiser is slower than either server.
    """
    elapsed_s = 0.0
    with httpx.Client(base_url=endpoint, headers={"api-key": KEY}, timeout=120) as http:
        if define:
            http.post("/indexes", json=DEFINITION).raise_for_status()
        for batch in batches(count, BATCH):
            body = json.dumps({"value": batch}).encode()
            started = time.perf_counter()
            http.post(f"/indexes('{INDEX}')/docs/search.index", content=body).raise_for_status()
            elapsed_s += time.perf_counter() - started
    return elapsed_s


def _report(out: Path, blocks: int, loaded: dict[str, float], rows: list[Row]) -> None:
    report = {
        "machine": {
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "system": platform.platform(),
        },
        "blocks": blocks,
        "load_s": {name: round(seconds, 1) for name, seconds in loaded.items()},
        "rows": [asdict(row) for row in rows],
    }
    out.write_text(json.dumps(report, indent=1) + "\n")
    print("| clients | mode | readable | p50 / p95 ms | per s | baseline p50 / p95 ms | per s | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        readable = (
            "all" if row.share is None else f"{row.share:g} %" + (", new filter each" if row.cold else "")
        )
        ours = f"{row.p50_ms:.1f} / {row.p95_ms:.1f} | {row.per_s:.0f}"
        theirs = f"{row.baseline_p50_ms:.1f} / {row.baseline_p95_ms:.1f} | {row.baseline_per_s:.0f}"
        print(f"| {row.clients} | {row.mode} | {readable} | {ours} | {theirs} | {row.ratio:.1f} |")


if __name__ == "__main__":
    main()
