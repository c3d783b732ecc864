"""`python -m evals.budgets --runs 200 --out report.json`: check that runs stay within their budgets, even
with faulty models.

Called by `make budgets` (docs/internals/measuring.md). Exit code 1 if a promise was broken, 2 if nothing
could be measured.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from evals.budgets.batches import Batch, plan
from evals.budgets.lane import Lane
from evals.budgets.report import are_kept, as_text, promises, report
from evals.budgets.seen import Seen
from evals.evaluation.revision import revision
from local.run_all.app_settings import ENDPOINT_NAMES
from local.run_all.demo import bring_samples
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import FREE_PORTS, StackError, StackSettings

# Number of questions per start of a host. A start takes 2 s.
BATCH = 5


def main() -> int:
    """Run the evaluation as set on the command line, and return the exit code."""
    arguments = _arguments()
    batches = plan(arguments.runs, arguments.seed, arguments.batch, arguments.faults)
    began = time.monotonic()
    try:
        runs = measure(batches, arguments)
    except StackError as failed:
        print(failed, file=sys.stderr)
        return 2
    results = report(runs) | {
        "seed": arguments.seed,
        "lanes": arguments.lanes,
        "at_once": arguments.at_once,
        "seconds": round(time.monotonic() - began),
        "cores": os.cpu_count(),
        "commit": revision(),
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{as_text(results)}\n\nWritten to {arguments.out}")
    return 0 if runs and are_kept(promises(runs)) else 1


def measure(batches: Sequence[Batch], arguments: argparse.Namespace) -> list[Seen]:
    """Run all batches on several stacks in parallel, and return one observation per run.

    Raises:
        StackError: if a stack doesn't start, dies or rejects a knob.
    """
    work = _Work(batches)
    threads = [
        threading.Thread(target=work.take, args=(number, arguments)) for number in range(arguments.lanes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if work.failures:
        first = work.failures[0]
        raise first if isinstance(first, StackError) else StackError(repr(first))
    return work.runs


class _Work:
    """A queue of batches that all lanes share, with the observations made so far."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._waiting = deque(batches)
        self._total = sum(len(batch.questions) for batch in batches)
        self.runs: list[Seen] = []
        self.failures: list[Exception] = []

    def take(self, number: int, arguments: argparse.Namespace) -> None:
        """Start a stack for lane `number`, and process batches on it until the queue is empty."""
        try:
            for seen in self._lane(number, arguments):
                self.runs.append(seen)
                print(_line(len(self.runs), self._total, seen), flush=True)
        except Exception as failed:  # noqa: BLE001  # told by the main thread
            self.failures.append(failed)
            self._waiting.clear()

    def _lane(self, number: int, arguments: argparse.Namespace) -> Iterator[Seen]:
        with _stack(number) as stack:
            lane = Lane(stack, arguments.budget_ms, arguments.at_once)
            while self._waiting:
                yield from lane.run(self._waiting.popleft())


@contextmanager
def _stack(number: int) -> Iterator[LocalStack]:
    environment = {name: value for name, value in os.environ.items() if name not in ENDPOINT_NAMES}
    prefix = f"groundwork-budgets-{number}-"
    with (
        tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder,
        LocalStack(StackSettings(FREE_PORTS, Path(folder)), environment=environment) as stack,
    ):
        bring_samples(stack, lambda done, whole, current: None)
        yield stack


def _line(done: int, total: int, seen: Seen) -> str:
    wall = "no end" if seen.wall_ms is None else f"{seen.wall_ms / 1000:.1f} s"
    broken = f"  <- {', '.join(seen.defects)}" if seen.defects else ""
    children = f", {len(seen.children)} children" if seen.children else ""
    return f"{done}/{total} {seen.fault} [{seen.knobs}] {seen.kind}: {seen.outcome}, {wall}{children}{broken}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.budgets", description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("report.json"))
    parser.add_argument(
        "--seed", type=int, default=20251121, help="Random seed of the questions and the model faults."
    )
    parser.add_argument(
        "--budget-ms",
        type=int,
        default=25_000,
        help=(
            "Total time budget of a run in milliseconds (MAX_TOTAL_LATENCY_MS). Other time limits are scaled "
            "accordingly."
        ),
    )
    parser.add_argument(
        "--lanes", type=int, default=3, help="Number of parallel stacks (default: %(default)s)."
    )
    parser.add_argument("--at-once", type=int, default=1, help="Number of concurrent questions per stack.")
    parser.add_argument(
        "--batch",
        type=int,
        default=BATCH,
        help="Number of questions between restarts of a host (default: %(default)s).",
    )
    parser.add_argument(
        "--faults",
        type=lambda listed: listed.split(","),
        default=(),
        help="Names of the fault scenarios to run, separated by commas (default: all).",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
