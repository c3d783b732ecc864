"""`make bench-start`: measure the cold start of the app relative to the packages that every function app
imports.

Each measurement is a new process, and the variants alternate, so that other load affects all of them. The
ratio compares CPU times, which depend little on other load.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.start.probes import AGENT_CREATION, AGENT_SETTINGS, APP_IMPORT, BASE_IMPORTS

ROOT = Path(__file__).resolve().parents[2]
MAX_CPU_RATIO = 1.15
MAX_MEMORY_RATIO = 1.1
MAX_COLD_AGENT_S = 1.0
MAX_WARM_AGENT_S = 0.05
# getrusage reports memory in kilobytes on Linux, and in bytes on macOS.
PEAK_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Measurement:
    """The measurements of one new process. `warm_s` is the time of the slowest of many repeated creations, or
    0 if there were none.
    """

    seconds: float
    cpu_s: float
    peak_mb: float
    warm_s: float = 0.0
    tool_count: int = 0


def measure(probe: str) -> Measurement:
    """Run a probe in a new process and return its measurements."""
    done = subprocess.run(
        [sys.executable, "-c", probe],
        cwd=ROOT,
        env={**os.environ, **AGENT_SETTINGS, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"A probe failed:\n{done.stderr}")
    seen = json.loads(done.stdout.splitlines()[-1])
    peak_mb = seen["peak"] * PEAK_UNIT_BYTES / 1e6
    return Measurement(seen["seconds"], seen["cpu"], peak_mb, seen.get("warm", 0.0), seen.get("tools", 0))


def measure_in_turns(probes: dict[str, str], runs: int) -> dict[str, list[Measurement]]:
    """Run all probes in turn, `runs` times each. An additional first round fills the file cache and isn't
    measured.
    """
    rounds = [{name: measure(probe) for name, probe in probes.items()} for _ in range(runs + 1)]
    return {name: [one[name] for one in rounds[1:]] for name in probes}


def main() -> int:
    """Run the benchmark and print the results. Return 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=7, help="Number of processes for each variant (default: %(default)s)."
    )
    runs = parser.parse_args().runs
    seen = measure_in_turns({"base": BASE_IMPORTS, "app": APP_IMPORT, "agent": AGENT_CREATION}, runs)
    base, app, agent = seen["base"], seen["app"], seen["agent"]
    print(f"Medians of {runs} new processes for each variant, started alternately.\n")
    for label, ones in (("three base packages", base), ("function_app", app), ("first agent", agent)):
        times = f"{median(ones, 'seconds') * 1000:7.0f} ms, CPU {median(ones, 'cpu_s') * 1000:5.0f} ms"
        print(f"{label:<22}{times} {median(ones, 'peak_mb'):7.1f} MB")
    verdicts = [
        verdict("CPU ratio", median(app, "cpu_s") / median(base, "cpu_s"), MAX_CPU_RATIO, ""),
        verdict("memory ratio", median(app, "peak_mb") / median(base, "peak_mb"), MAX_MEMORY_RATIO, ""),
        verdict("agent cold", median(agent, "seconds"), MAX_COLD_AGENT_S, " s"),
        verdict("agent warm, slowest", median(agent, "warm_s"), MAX_WARM_AGENT_S, " s"),
    ]
    print(f"The agent has {agent[0].tool_count} tools.")
    return 0 if all(verdicts) else 1


def median(measurements: list[Measurement], field: str) -> float:
    """Return the median of one field of the measurements."""
    middle: float = statistics.median(getattr(one, field) for one in measurements)
    return middle


def verdict(name: str, value: float, limit: float, unit: str) -> bool:
    """Print a target and whether the value meets it. Return True if it does."""
    is_met = value <= limit
    print(f"{name:<22}{value:9.4f}{unit} (at most {limit}{unit}): {'met' if is_met else 'MISSED'}")
    return is_met


if __name__ == "__main__":
    sys.exit(main())
