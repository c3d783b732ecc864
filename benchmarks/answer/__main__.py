"""`python -m benchmarks.answer --out report.json`: measure the time a question takes in addition to its model
calls.

Asks a running stack with local models, each question in a new thread and then all in one thread. Taps between
the app and its servers separate model time from our own. The baseline repeats each question's model and
search requests without the app, alternating with the questions.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from benchmarks.answer.asking import Asked, ask, steps_of
from benchmarks.answer.baseline import replay_s
from benchmarks.answer.breakdown import KINDS, Part, busy_ms, parts_of
from benchmarks.answer.tap import Exchange, Taps
from benchmarks.answer.tapped import proxied_stack
from local.run_all.stack import LocalStack
from samples.acl import ANNA
from samples.questions import DEMO_QUESTIONS, FIRST_QUESTION

# Upper limits in milliseconds for the median of the app's own time and of the time to the first event. Missed
# limits are reported.
OVERHEAD_MS, FIRST_EVENT_MS = 400.0, 100.0
QUESTIONS = tuple(one.text for one in (FIRST_QUESTION, *DEMO_QUESTIONS))


@dataclass(frozen=True)
class Measured:
    """The measurements of one question, in milliseconds. `overhead_ms` is the total time minus the time
    during which a model call was open.
    """

    question: str
    total_ms: float
    first_event_ms: float
    model_ms: float
    search_ms: float
    overhead_ms: float
    baseline_ms: float
    cpu_ms: float
    parts: list[Part]


def main() -> None:
    """Run the benchmark, print a summary and write the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answer", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=5, help=f"Rounds per group, each with {len(QUESTIONS)} questions."
    )
    parser.add_argument(
        "--pause",
        type=float,
        default=1.5,
        help="Pause before each question, in seconds, during which the app stores the previous turn.",
    )
    parser.add_argument("--out", type=Path, default=Path("report.json"))
    arguments = parser.parse_args()
    taps = Taps()
    with (
        tempfile.TemporaryDirectory(prefix="groundwork-bench-") as folder,
        proxied_stack(Path(folder), taps) as stack,
    ):
        bench = Bench(stack, taps, arguments.pause)
        # The first calls open connections and create tables, so they aren't measured.
        bench.round(None)
        groups: dict[str, list[Measured]] = {"new thread": [], "same thread": []}
        for _ in range(arguments.rounds):
            groups["new thread"] += bench.round(None)
            groups["same thread"] += bench.round(bench.new_thread())
    _write(arguments.out, groups)
    for name, measured in groups.items():
        _print(name, measured)


class Bench:
    """A benchmark of a local stack whose requests are recorded by proxies."""

    def __init__(self, stack: LocalStack, taps: Taps, pause_s: float) -> None:
        self._stack, self._taps, self._pause_s = stack, taps, pause_s
        self._token = stack.token(ANNA)
        self._worker = psutil.Process(stack.worker_pid)

    def new_thread(self) -> str:
        """Create a thread by asking one question in it, and return its id."""
        return ask(self._stack, self._token, QUESTIONS[0], None).thread_id

    def round(self, thread_id: str | None) -> list[Measured]:
        """Ask every question in the given thread, or each in a new thread for None. Return the
        measurements.
        """
        return [self._measure(question, thread_id) for question in QUESTIONS]

    def _measure(self, question: str, thread_id: str | None) -> Measured:
        time.sleep(self._pause_s)
        cpu = self._cpu_s()
        answer = ask(self._stack, self._token, question, thread_id)
        cpu = self._cpu_s() - cpu
        steps = steps_of(self._stack, answer.run_id)
        seen = self._taps.between(answer.asked, answer.completed)
        return _measurement_of(
            question, answer, cpu, parts_of(answer.asked, answer.completed, steps, seen), seen
        )

    def _cpu_s(self) -> float:
        used = self._worker.cpu_times()
        return float(used.user + used.system)


def _measurement_of(
    question: str, answer: Asked, cpu_s: float, parts: list[Part], seen: list[Exchange]
) -> Measured:
    total = (answer.completed - answer.asked) * 1000
    model = busy_ms("model", answer.asked, answer.completed, seen)
    return Measured(
        question=question,
        total_ms=total,
        first_event_ms=(answer.first_event - answer.asked) * 1000,
        model_ms=model,
        search_ms=busy_ms("search", answer.asked, answer.completed, seen),
        overhead_ms=total - model,
        baseline_ms=replay_s(seen) * 1000,
        cpu_ms=cpu_s * 1000,
        parts=parts,
    )


def _write(out: Path, groups: dict[str, list[Measured]]) -> None:
    machine = {"cores": os.cpu_count(), "load": os.getloadavg()}
    rows = {name: [asdict(one) for one in measured] for name, measured in groups.items()}
    out.write_text(json.dumps({"machine": machine, "questions": rows}, indent=1) + "\n")


def _print(name: str, measured: Sequence[Measured]) -> None:
    print(f"\n## {name}: {len(measured)} questions, load {os.getloadavg()[0]:.1f}\n")
    print("| | p50 | p95 |\n|---|---|---|")
    for field in ("total", "model", "search", "overhead", "first_event", "baseline", "cpu"):
        values = [getattr(one, f"{field}_ms") for one in measured]
        print(f"| {field.replace('_', ' ')}, ms | {statistics.median(values):.0f} | {_p95(values):.0f} |")
    ratios = [one.total_ms / one.baseline_ms for one in measured]
    print(f"| total / baseline | {statistics.median(ratios):.2f} | {_p95(ratios):.2f} |\n")
    print("| step (runs) | wall | model | search | storage | own | model, search, storage requests |")
    print("|---|---|---|---|---|---|---|")
    parts = [part for one in measured for part in one.parts]
    for kind in dict.fromkeys(part.kind for part in parts):
        _print_part(kind, [part for part in parts if part.kind == kind])
    for field, value, aim in (
        ("overhead", "overhead_ms", OVERHEAD_MS),
        ("first event", "first_event_ms", FIRST_EVENT_MS),
    ):
        middle = statistics.median(getattr(one, value) for one in measured)
        print(f"{field}: {middle:.0f} ms (aim {aim:.0f}): {'met' if middle <= aim else 'MISSED'}")


def _print_part(kind: str, parts: Sequence[Part]) -> None:
    busy = " | ".join(f"{statistics.median(part.busy_ms[name] for part in parts):.0f}" for name in KINDS)
    counts = ", ".join(f"{statistics.mean(part.requests[name] for part in parts):.1f}" for name in KINDS)
    wall = statistics.median(part.wall_ms for part in parts)
    own = statistics.median(part.own_ms for part in parts)
    print(f"| {kind} ({len(parts)}) | {wall:.0f} | {busy} | {own:.0f} | {counts} |")


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, round(0.95 * len(values)))]


if __name__ == "__main__":
    main()
