"""Monitors the stack under load: memory and CPU time of its processes, and response times of the host."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx
import psutil

INTERVAL_S = 1.0


@dataclass(frozen=True)
class Sample:
    """The resident memory (MB) and CPU time (seconds) of each process at one time, a value of
    time.monotonic().
    """

    at: float
    rss_mb: Mapping[str, float]
    cpu_s: Mapping[str, float]


@dataclass
class Watch:
    """The samples of the monitored processes. `probes_ms` contains the durations of GET /api/health, which
    show delays of the event loop.
    """

    pids: Mapping[str, int]
    samples: list[Sample] = field(default_factory=list)
    probes_ms: list[tuple[float, float]] = field(default_factory=list)

    async def keep(self, client: httpx.AsyncClient) -> None:
        """Take a sample and send a request to the host every second, until cancelled."""
        processes = {name: psutil.Process(pid) for name, pid in self.pids.items()}
        while True:
            self.samples.append(_look(processes))
            began = time.monotonic()
            (await client.get("/api/health")).raise_for_status()
            self.probes_ms.append((began, (time.monotonic() - began) * 1000))
            await asyncio.sleep(max(0.0, INTERVAL_S - (time.monotonic() - began)))


def _look(processes: Mapping[str, psutil.Process]) -> Sample:
    """Return the memory and CPU time of each process, including its children unless they are monitored
    separately.
    """
    rss, cpu = {}, {}
    watched = {process.pid for process in processes.values()}
    for name, process in processes.items():
        children = process.children(recursive=True)
        others = [one for child in children if child.pid in watched for one in child.children(recursive=True)]
        family = [process, *(one for one in children if one.pid not in watched and one not in others)]
        rss[name] = sum(one.memory_info().rss for one in family) / 1e6
        cpu[name] = sum(one.cpu_times().user + one.cpu_times().system for one in family)
    return Sample(time.monotonic(), rss, cpu)


def slope_mb_per_minute(points: list[tuple[float, float]]) -> float:
    """Return the slope of a least-squares line through (seconds, MB) points, in MB per minute."""
    if len(points) < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return 60 * sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
