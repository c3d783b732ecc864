"""`python -m evals.pace --out report.json`: ask sixty questions of all types at the pace of hosted models.

Called by `make eval-pace`; see docs/internals/measuring.md. Uses default budgets, the sample documents, and
the stand-in slowed down to each pace. Exit code 2 if the stack doesn't start; bad numbers are not errors.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, quantiles

import httpx

from evals.real.__main__ import read_questions
from evals.real.asking import RecordedRun, RecordedStack, read_runs, recorded_stack
from local.run_all.app_settings import LOCAL_CHAT_MODEL
from local.run_all.demo import ProgressBar, bring_samples
from local.run_all.stack_settings import StackError

QUESTIONS = Path(__file__).parent / "questions.jsonl"
AT_ONCE = 4
# Default of MAX_TOTAL_LATENCY_MS.
DEADLINE_S = 60.0
# Knobs of the local model (docs/internals/model-server.md) for the pace of some hosted endpoints.
PACES = {
    "none": "",
    "gpt-4.1": "@ttft=700,tps=70",
    "gpt-5-mini": "@ttft=900,tps=120,thinks",
    "first-word": "@ttft=500,tps=65",
}


def main() -> int:
    """Run the evaluation as set on the command line, and return the exit code."""
    arguments = _arguments()
    folder = arguments.runs or arguments.out.with_suffix(".runs")
    try:
        with recorded_stack({}) as asking:
            bring_samples(asking.stack, ProgressBar())
            paces = {name: _ask(asking, name, folder / name, arguments) for name in arguments.paces}
    except (StackError, ValueError, OSError, httpx.HTTPError) as failed:
        print(failed, file=sys.stderr)
        return 2
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"paces": paces}, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(paces, indent=1))
    return 0


def _ask(
    asking: RecordedStack, pace: str, folder: Path, options: argparse.Namespace
) -> dict[str, float | None]:
    questions = read_questions(QUESTIONS)[: options.limit]
    asking.stack.kill_host()
    asking.stack.start_host({"CHAT_MODEL": LOCAL_CHAT_MODEL + PACES[pace]})
    asking.ask_all(questions, folder, options.at_once)
    return conclude(read_runs(folder, [one.id for one in questions]))


def conclude(runs: Sequence[RecordedRun]) -> dict[str, float | None]:
    """Return the measures of all runs at one pace. Measures without data are None."""
    first = [run.first_s for run in runs if run.first_s is not None]
    seconds = [run.seconds for run in runs]
    return {
        "questions": len(runs),
        "whole": sum(run.whole for run in runs),
        "cut": sum(bool(run.answer.get("truncated")) for run in runs),
        "late": sum(run.seconds > DEADLINE_S for run in runs),
        "calls_mean": round(mean(len(run.calls) for run in runs), 2) if runs else None,
        "tokens_in_mean": round(mean(sum(call.tokens_in for call in run.calls) for run in runs))
        if runs
        else None,
        "first_token_p50_s": _percentile(first, 50),
        "first_token_p95_s": _percentile(first, 95),
        "latency_p50_s": _percentile(seconds, 50),
        "latency_p95_s": _percentile(seconds, 95),
    }


def _percentile(values: Sequence[float], percent: int) -> float | None:
    if len(values) < 2:
        return values[0] if values else None
    return round(quantiles(values, n=100, method="inclusive")[percent - 1], 2)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.pace", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to which the report is written.")
    parser.add_argument(
        "--runs",
        type=Path,
        default=None,
        help="Folder for the recorded runs (default: OUT with the suffix .runs).",
    )
    parser.add_argument("--limit", type=int, default=None, help="Ask only the first N questions.")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="Number of concurrent conversations.")
    parser.add_argument(
        "--paces",
        type=lambda listed: listed.split(","),
        default=tuple(PACES),
        help=f"Paces to measure, separated by commas (default: {', '.join(PACES)}).",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
