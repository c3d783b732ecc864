"""What the delegation policy adds to a question: `python -m benchmarks.delegation --out report.json`.

Each decision is timed by itself, in a fresh process, over questions of every outcome: what is measured is the
input made, the decision, its event with the version of the rules. Not measured: writing the event, which goes
with others in one append.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.delegation.probe import POLICY, POLICY_SETTINGS

ROOT = Path(__file__).resolve().parents[2]
MAX_P99_MS = 1.0  # contracts.md, section 8, and the aim of the policy


def main() -> int:
    """Measure, print and write; 1 when the aim is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.delegation", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="decisions")
    parser.add_argument("--out", type=Path, help="report, as JSON")
    arguments = parser.parse_args()
    done = subprocess.run(
        [sys.executable, "-c", POLICY, str(arguments.count)],
        cwd=ROOT,
        env={**os.environ, **POLICY_SETTINGS, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"The probe failed:\n{done.stderr}")
    policy = json.loads(done.stdout.splitlines()[-1])
    load = os.getloadavg()
    if arguments.out is not None:
        report = {
            "machine": {"cores": os.cpu_count(), "load": load},
            "policy": policy,
            "max_p99_ms": MAX_P99_MS,
        }
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")
    print("| | p50 ms | p99 ms | slowest ms |\n|---|---|---|---|")
    for part in ("first", "decide", "all"):
        print(
            f"| {part} | " + " | ".join(f"{policy[part][name]:.3f}" for name in ("p50", "p99", "max")) + " |"
        )
    print(f"\n{policy['count']} decisions: {policy['decisions']}; load {load[0]:.1f}")
    return 0 if policy["all"]["p99"] < MAX_P99_MS else 1


if __name__ == "__main__":
    sys.exit(main())
