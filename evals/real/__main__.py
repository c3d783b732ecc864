"""`python -m evals.real --questions FILE --out report.json`: ask the questions of a file about the sample
documents.

Called by `make eval-real`; see docs/internals/measuring.md. Exit code 2 if the file can't be read or the
stack doesn't start; bad answers are not errors.
"""

import argparse
import json
import sys
from pathlib import Path

import httpx

from evals.real.asking import PATIENT, Asked, RecordedRun, read_runs, recorded_stack
from local.run_all.demo import ProgressBar, bring_samples
from local.run_all.stack_settings import StackError

AT_ONCE = 4


def main() -> int:
    """Run the evaluation as set on the command line, and return the exit code."""
    arguments = _arguments()
    folder = arguments.runs or arguments.out.with_suffix(".runs")
    try:
        questions = read_questions(arguments.questions)
        with recorded_stack(PATIENT if arguments.patient else {}) as asking:
            bring_samples(asking.stack, ProgressBar())
            asking.ask_all(questions, folder, arguments.at_once)
    except (StackError, ValueError, OSError, httpx.HTTPError) as failed:
        print(failed, file=sys.stderr)
        return 2
    runs = read_runs(folder, [one.id for one in questions])
    report = {"questions": [as_row(run) for run in runs]}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"Written to {arguments.out}; requests and whole answers in {folder}")
    return 0


def read_questions(path: Path) -> list[Asked]:
    """Read questions from JSON lines of {"id", "question", "user", "thread", "documents"}. Only the question
    is required.

    Raises:
        ValueError: if a line is malformed or an id is repeated.
    """
    questions = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = {"id": f"q{number:03}", **json.loads(line)}
            questions.append(Asked(**{**entry, "documents": tuple(entry.get("documents", ()))}))
        except TypeError as wrong:
            raise ValueError(f"{path}, line {number}: {wrong}") from None
    if len({one.id for one in questions}) < len(questions):
        raise ValueError(f"{path}: duplicate id.")
    return questions


def as_row(run: RecordedRun) -> dict[str, object]:
    """Return a row of the report for a run, with the measures and the answer."""
    citations = run.answer.get("citations", ())
    return {
        "id": run.id,
        "question": run.question,
        "status": run.status,
        "whole": run.whole,
        "abstained": bool(run.answer.get("abstained")),
        "calls": len(run.calls),
        "tokens_in": sum(call.tokens_in for call in run.calls),
        "tokens_out": sum(call.tokens_out for call in run.calls),
        "citations": len(citations),
        "citations_verified": sum(bool(one["verified"]) for one in citations),
        "figures": len(run.answer.get("figures", ())),
        "warnings": run.answer.get("warnings", []),
        "seconds": run.seconds,
        "answer": run.answer.get("text", ""),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.real", description=__doc__)
    parser.add_argument(
        "--questions",
        type=Path,
        required=True,
        help=("File with JSON lines of {id, question, user, thread, documents}."),
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to which the report is written.")
    parser.add_argument(
        "--runs",
        type=Path,
        default=None,
        help="Folder for the recorded runs (default: OUT with the suffix .runs).",
    )
    parser.add_argument(
        "--patient",
        action="store_true",
        help="Raise all time limits, for an endpoint where a person writes the replies.",
    )
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="Number of concurrent conversations.")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
