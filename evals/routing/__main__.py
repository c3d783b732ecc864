"""`python -m evals.routing --out report.json`: what questions are taken for, and when the app asks back.

`make eval-routing` calls it: docs/internals/measuring.md. The app is found as `make eval` finds it.
Exit code 1 when nothing got through, 2 when the app cannot be reached; bad numbers are no error.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from evals.evaluation.app import App, connected_app
from evals.evaluation.ingesting import ingest
from evals.evaluation.question_set import QuestionSet
from evals.evaluation.report import Origin
from evals.evaluation.revision import revision
from evals.routing.asking import NAMING_PROJECT, Clarified, Routed, clarify_all, route_all
from evals.routing.labels import read_documents, read_naming, read_routing
from evals.routing.report import as_json, as_markdown
from local.run_all.stack_settings import StackError

AT_ONCE = 6  # a run waits for its queues more than for the processor
INGEST_AT_ONCE = 8
INGEST_TIMEOUT_S = 600.0
Value = TypeVar("Value")


def main() -> int:
    """Command line. Returns the exit code."""
    arguments = _arguments()
    try:
        with connected_app() as app:
            routed, clarified = _measured(app, arguments.at_once)
            origin = Origin(app.model, revision())
    except (StackError, ValueError, OSError) as failed:
        print(failed, file=sys.stderr)
        return 2
    markdown = as_markdown(routed, clarified, origin)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(as_json(routed, clarified, origin), encoding="utf-8")
    arguments.out.with_suffix(".md").write_text(markdown, encoding="utf-8")
    print(f"{markdown}\nWritten to {arguments.out}, with .md beside it")
    return 1 if all([*(one.error for one in routed), *(one.error for one in clarified)]) else 0


def _measured(app: App, at_once: int) -> tuple[list[Routed], list[Clarified]]:
    routed = _watched("routing", route_all(app, read_routing(), at_once))
    documents = QuestionSet(NAMING_PROJECT, read_documents(), ())
    if not_ready := ingest(app, documents, INGEST_AT_ONCE, INGEST_TIMEOUT_S).not_ready:
        raise ValueError(f"{not_ready[0].filename} could not be brought in: {not_ready[0].reason}")
    return routed, _watched("clarification", clarify_all(app, read_naming(), at_once))


def _watched(name: str, outcomes: Iterator[Value]) -> list[Value]:
    began = time.monotonic()
    seen = list(outcomes)
    print(f"{name}: {len(seen)} questions in {time.monotonic() - began:.0f} s", flush=True)
    return seen


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.routing", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON report to write")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="questions in flight")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
