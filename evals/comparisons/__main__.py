"""`python -m evals.comparisons --data FOLDER --out report.json`: are all documents of a comparison cited?

`make eval-comparisons` calls it: docs/internals/measuring.md. The questions of a set
whose labels name several documents are asked twice of a local stack: with sub-agents, and with them switched
off. Exit code 2 when a set cannot be read or the stack does not start; bad numbers are no error.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from evals.comparisons.measuring import Arm, Asked, as_row, conclude, over_several
from evals.evaluation.app import App, app_of, own_stack
from evals.evaluation.ingesting import ingest, said_of
from evals.evaluation.question_set import Question, find_sets, read_set
from evals.evaluation.report import table
from evals.evaluation.revision import revision
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import StackError

ARMS = {"sub-agents": {"SUBAGENTS_ENABLED": "true"}, "none": {"SUBAGENTS_ENABLED": "false"}}
INGEST_AT_ONCE = 8
INGEST_TIMEOUT_S = 3600.0


def main() -> int:
    """Command line. Returns the exit code."""
    arguments = _arguments()
    try:
        folders = find_sets(arguments.data, arguments.sets)
        with own_stack(os.environ) as stack:
            told = {folder.name: _measure(stack, folder, arguments) for folder in folders}
    except (StackError, ValueError, OSError) as failed:
        print(failed, file=sys.stderr)
        return 2
    report = {"sets": told, "commit": revision(), "load": os.getloadavg(), "at_once": arguments.at_once}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"Written to {arguments.out}")
    return 0


def _measure(stack: LocalStack, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    whole = read_set(folder)
    questions = over_several(whole)[: arguments.limit]
    if not questions:
        raise ValueError(f"No question of {folder} is labelled with several documents.")
    if not arguments.keep:
        with app_of(stack) as app:
            found = ingest(app, whole, INGEST_AT_ONCE, INGEST_TIMEOUT_S)
        if found.not_ready:
            raise ValueError(f"{found.not_ready[0].filename} could not be brought in.")
    arms = [_arm(stack, name, questions, whole.name, arguments) for name in arguments.arms]
    print(table(f"{whole.name}: {len(questions)} questions", {arm.name: arm.numbers for arm in arms}))
    return {arm.name: {**arm.numbers, "questions_asked": [as_row(one) for one in arm.asked]} for arm in arms}


def _arm(
    stack: LocalStack,
    name: str,
    questions: Sequence[Question],
    project_id: str,
    arguments: argparse.Namespace,
) -> Arm:
    stack.kill_host()
    stack.start_host(ARMS[name])
    with app_of(stack) as app, ThreadPoolExecutor(arguments.at_once) as pool:
        asked = list(pool.map(lambda question: _ask(app, question, project_id), questions))
    return conclude(name, asked)


def _ask(app: App, question: Question, project_id: str) -> Asked:
    began = time.monotonic()
    try:
        run = app.ask(question.text, project_id)
    except httpx.HTTPError as failed:
        return Asked(question, None, time.monotonic() - began, said_of(failed))
    return Asked(question, run, time.monotonic() - began)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.comparisons", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of sets, or of one set")
    parser.add_argument("--sets", default="", help="names of sets, separated by commas; all when left out")
    parser.add_argument("--out", type=Path, required=True, help="JSON report to write")
    parser.add_argument("--limit", type=int, default=None, help="only the first so many of these questions")
    parser.add_argument("--keep", action="store_true", help="the documents are in the stack already")
    parser.add_argument("--at-once", type=int, default=1, help="questions side by side")
    parser.add_argument(
        "--arms", type=lambda listed: listed.split(","), default=list(ARMS), help="of: " + ", ".join(ARMS)
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
