"""`python -m evals.evaluation --data FOLDER --sets a,b --out report.json`: measure the quality of search and
answers.

Called by `make eval` (docs/internals/measuring.md). Exit code 1 if every call of a set failed, 2 if a set
can't be read or the app can't be reached; poor results are not an error.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from evals.compare import compare, read_report
from evals.evaluation.app import App, connected_app
from evals.evaluation.asking import Outcome, ask_all
from evals.evaluation.ingesting import Ingestion, ingest
from evals.evaluation.page import as_html
from evals.evaluation.question_set import QuestionSet, find_sets, read_set
from evals.evaluation.report import Origin, as_json, as_json_lines, as_markdown
from evals.evaluation.result import SetResult, conclude
from evals.evaluation.revision import revision
from evals.evaluation.source_text import SourceTexts
from local.run_all.stack_settings import StackError

# Number of documents ingested at the same time. It exceeds the number of cores, because the ingestion of
# small documents mostly waits for responses.
INGEST_AT_ONCE = 16
ASK_AT_ONCE = 2
# Timeout per file in seconds, including the time in the queue behind all others.
INGEST_TIMEOUT_S = 3600.0
PROGRESS_S = 10.0


def main() -> int:
    """Run the evaluation as set on the command line, and return the exit code."""
    arguments = _arguments()
    try:
        folders = find_sets(arguments.data, arguments.sets)
        sets = [read_set(folder, arguments.queries, arguments.limit) for folder in folders]
        baseline = read_report(arguments.baseline) if arguments.baseline else None
        with connected_app(prompts=arguments.prompts) as app:
            results = [_evaluate(app, questions, arguments) for questions in sets]
            origin = Origin(app.model, revision())
    except (StackError, ValueError, OSError) as failed:
        print(failed, file=sys.stderr)
        return 2
    _write(arguments.out, results, origin)
    if baseline is not None:
        difference = compare(baseline, read_report(arguments.out))
        arguments.out.with_suffix(".differences.md").write_text(difference, encoding="utf-8")
        print(difference)
    dead = [result.name for result in results if result.nothing_worked]
    if dead:
        print(f"Every search of {', '.join(dead)} failed, so the measures are meaningless.", file=sys.stderr)
    return 1 if dead else 0


def _evaluate(app: App, questions: QuestionSet, arguments: argparse.Namespace) -> SetResult:
    ingestion = Ingestion()
    if not arguments.keep:
        ingestion = ingest(app, questions, arguments.ingest_at_once, INGEST_TIMEOUT_S)
    outcomes = _outcomes_of(app, questions, arguments)
    return conclude(
        questions, ingestion, outcomes, SourceTexts(questions).page, answers=not arguments.no_answers
    )


def _outcomes_of(app: App, questions: QuestionSet, arguments: argparse.Namespace) -> list[Outcome]:
    show = _progress(questions.name, len(questions.questions))
    outcomes = []
    for outcome in ask_all(app, questions, arguments.at_once, answers=not arguments.no_answers):
        outcomes.append(outcome)
        show(len(outcomes))
    return outcomes


def _progress(name: str, total: int) -> Callable[[int], None]:
    began = shown = time.monotonic()

    def show(done: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= PROGRESS_S or done == total:
            shown = now
            print(f"{name}: {done}/{total} questions ({now - began:.0f} s)", flush=True)

    return show


def _write(out: Path, results: list[SetResult], origin: Origin) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    markdown = as_markdown(results, origin)
    out.write_text(as_json(results, origin), encoding="utf-8")
    out.with_suffix(".md").write_text(markdown, encoding="utf-8")
    out.with_suffix(".html").write_text(as_html(results, origin), encoding="utf-8")
    out.with_suffix(".questions.jsonl").write_text(as_json_lines(results), encoding="utf-8")
    print(f"{markdown}\nWritten to {out}, with .html, .md and .questions.jsonl beside it")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.evaluation", description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help=("Folder that contains a question set, or several of them.")
    )
    parser.add_argument(
        "--sets",
        default="",
        help=("Names of the question sets to evaluate, separated by commas (default: all)."),
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to which the report is written.")
    parser.add_argument("--limit", type=int, default=None, help="Use only the first N questions of each set.")
    parser.add_argument(
        "--queries", default=None, help="Name of the file with a set's questions, such as queries.jsonl."
    )
    parser.add_argument(
        "--no-answers",
        action="store_true",
        help="Measure only the search, and ask no questions.",
    )
    parser.add_argument("--prompts", action="store_true", help="Record the prompts sent to the model.")
    parser.add_argument(
        "--keep",
        action="store_true",
        help=("Skip the ingestion, because the app already contains the documents."),
    )
    parser.add_argument(
        "--baseline", type=Path, default=None, help="Earlier report with which the results are compared."
    )
    parser.add_argument("--at-once", type=int, default=ASK_AT_ONCE, help="Number of concurrent questions.")
    parser.add_argument(
        "--ingest-at-once",
        type=int,
        default=INGEST_AT_ONCE,
        help=("Number of documents that are ingested at the same time."),
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
