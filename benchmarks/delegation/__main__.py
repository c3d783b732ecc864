"""What delegation adds to a question: `python -m benchmarks.delegation --out report.json`.

The policy: each decision is timed by itself, in a fresh process, over questions of every outcome; measured is
the input made, the decision, its event with the version of the rules; not the writing of the event, which
goes with others in one append. A sub-agent (`child.py`): questions through the stack, with and without.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.delegation.child import MAX_CHILD_MS, as_text, measure, summary
from benchmarks.delegation.probe import POLICY, POLICY_SETTINGS

ROOT = Path(__file__).resolve().parents[2]
MAX_P99_MS = 1.0  # contracts.md, section 8, and the aim of the policy


def main() -> int:
    """Measure, print and write; 1 when an aim is missed."""
    arguments = _arguments()
    policy = _policy(arguments.count)
    _print_policy(policy)
    child = summary(measure(arguments.rounds)) if arguments.rounds else None
    if child is not None:
        print(f"\n{as_text(child)}")
    if arguments.out is not None:
        _write(arguments.out, policy, child)
    is_met = policy["all"]["p99"] < MAX_P99_MS
    if child is not None:
        is_met = is_met and 0 < child["child_ms"].get("p50", 0.0) < MAX_CHILD_MS
    return 0 if is_met else 1


def _policy(count: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", POLICY, str(count)],
        cwd=ROOT,
        env={**os.environ, **POLICY_SETTINGS, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"The probe failed:\n{done.stderr}")
    policy: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return policy


def _print_policy(policy: dict[str, Any]) -> None:
    print("| | p50 ms | p99 ms | slowest ms |\n|---|---|---|---|")
    for part in ("first", "decide", "all"):
        print(
            f"| {part} | " + " | ".join(f"{policy[part][name]:.3f}" for name in ("p50", "p99", "max")) + " |"
        )
    print(f"\n{policy['count']} decisions: {policy['decisions']}; load {os.getloadavg()[0]:.1f}")


def _write(out: Path, policy: dict[str, Any], child: dict[str, Any] | None) -> None:
    report = {
        "machine": {"cores": os.cpu_count(), "load": os.getloadavg()},
        "policy": policy,
        "max_p99_ms": MAX_P99_MS,
        "child": child,
        "max_child_ms": MAX_CHILD_MS,
    }
    out.write_text(json.dumps(report, indent=1) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.delegation", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="decisions")
    parser.add_argument(
        "--rounds", type=int, default=3, help="of questions through the stack; 0 = policy only"
    )
    parser.add_argument("--out", type=Path, help="report, as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
