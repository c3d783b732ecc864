"""`python -m evals.steps --data SET --out report.json`: measure which evidence the model gets for multi-step
questions.

A question is perfect if all passages it needs were shown to the model in any of its calls. Called by `make
eval-steps`; see docs/internals/measuring.md. Exit code 2 if the set can't be read or the stack doesn't start.
"""

import argparse
import json
import random
import re
import sys
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from statistics import mean

import httpx

from evals.evaluation.app import app_of
from evals.evaluation.ingesting import ingest
from evals.evaluation.question_set import Question, QuestionSet, read_set
from evals.real.asking import PATIENT, Asked, RecordedRun, read_runs, recorded_stack
from local.run_all.stack_settings import StackError

AT_ONCE = 4
INGEST_AT_ONCE = 16
INGEST_TIMEOUT_S = 3600.0
# Length of the pieces of a passage that are looked up in the prompt. The prompt may contain only part of a
# passage that spans two blocks.
_PIECE_CHARS = 100


def main() -> int:
    """Run the evaluation as set on the command line, and return the exit code."""
    arguments = _arguments()
    folder = arguments.runs or arguments.out.with_suffix(".runs")
    try:
        whole = read_set(arguments.data)
        questions = chosen(whole.questions, arguments.questions, arguments.seed)
        ids = [question.query_id for question in questions]
        if len(read_runs(folder, ids)) < len(ids):
            _ask(whole, questions, folder, arguments)
    except (StackError, ValueError, OSError, httpx.HTTPError) as failed:
        print(failed, file=sys.stderr)
        return 2
    report = conclude(whole, questions, read_runs(folder, ids))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: value for name, value in report.items() if name != "each"}))
    return 0


def chosen(questions: Sequence[Question], count: int, seed: int) -> list[Question]:
    """Return a random sample of `count` questions, determined by the seed."""
    some = random.Random(seed).sample(questions, min(count, len(questions)))
    return sorted(some, key=lambda question: question.query_id)


def _ask(
    whole: QuestionSet, questions: Sequence[Question], folder: Path, options: argparse.Namespace
) -> None:
    with recorded_stack(PATIENT if options.patient else {}) as asking:
        with app_of(asking.stack) as app:
            not_ready = ingest(app, whole, INGEST_AT_ONCE, INGEST_TIMEOUT_S).not_ready
        if not_ready:
            raise ValueError(f"{not_ready[0].filename} could not be ingested: {not_ready[0].reason}")
        prompts = [Asked(one.query_id, one.text, project_id=whole.name) for one in questions]
        asking.ask_all(prompts, folder, options.at_once)


def conclude(
    whole: QuestionSet, questions: Sequence[Question], runs: Sequence[RecordedRun]
) -> dict[str, object]:
    """Return the report on all runs. Failed runs are included in all measures."""
    pieces = {source.key: _pieces(source.text or "") for source in whole.sources}
    needed = {one.query_id: {name for name, _ in one.grades} for one in questions}
    seen = [_Seen(run, pieces) for run in runs]
    return {
        "questions": len(seen),
        "perfect": round(mean(needed[one.run.id] <= one.shown for one in seen), 3) if seen else None,
        "passages_mean": round(mean(len(one.shown) for one in seen), 2) if seen else None,
        "calls_mean": round(mean(len(one.run.calls) for one in seen), 2) if seen else None,
        "each": [
            {
                "id": one.run.id,
                "passages": len(one.shown),
                "calls": len(one.run.calls),
                "missing": sorted(needed[one.run.id] - one.shown),
            }
            for one in seen
        ],
    }


class _Seen:
    """A run with the labelled passages that were shown to its model."""

    def __init__(self, run: RecordedRun, pieces: Mapping[str, Sequence[str]]) -> None:
        self.run = run
        text = "\n".join(call.text for call in run.calls)
        folded = _fold(text)
        # A name alone is not enough, because it may occur in a list of documents; nor is the text alone,
        # because a short text may occur in another passage.
        names = [name for name in pieces if name in text]
        self.shown = {name for name in names if any(part in folded for part in pieces[name])}


def _pieces(text: str) -> list[str]:
    """Split a passage, without its title, into pieces that are short enough to be contained in one block,
    even if the passage spans two.
    """
    folded = _fold(text.partition("\n")[2])
    cut = [folded[at : at + _PIECE_CHARS] for at in range(0, len(folded), _PIECE_CHARS)]
    return [piece for piece in cut if len(piece) == _PIECE_CHARS] or [folded]


def _fold(text: str) -> str:
    """Return only the letters and digits of a text, because prompts escape some characters and wrap lines."""
    return re.sub(r"[\W_]+", "", unescape(text)).casefold()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.steps", description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help=("Folder of a question set that consists of passages.")
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to which the report is written.")
    parser.add_argument(
        "--runs",
        type=Path,
        default=None,
        help="Folder for the recorded runs (default: OUT with the suffix .runs).",
    )
    parser.add_argument(
        "--questions",
        type=int,
        default=25,
        help=("Number of questions to draw at random (default: %(default)s)."),
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="Random seed for drawing the questions (default: %(default)s)."
    )
    parser.add_argument(
        "--patient",
        action="store_true",
        help="Raise all time limits, for an endpoint where a person writes the replies.",
    )
    parser.add_argument(
        "--at-once", type=int, default=AT_ONCE, help="Number of concurrent questions (default: %(default)s)."
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
