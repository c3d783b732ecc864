"""`python -m evals.retrieval --data FOLDER --out report.json`: how well the app finds the right pages.

Drops the set's documents into a running app (or a local stack of its own), asks every question of
`POST /api/search`, and compares the ranking of pages with the set's labels.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from evals.ingest_report.corpus import find_files
from evals.ingest_report.ingesting import Ingesting
from evals.ingest_report.running_app import RunningApp, running_app
from evals.retrieval.metrics import (
    Target,
    documents_of,
    first_of_each,
    hit_at,
    mean,
    ndcg_at,
    recall_at,
)
from evals.retrieval.questions import Question, read_questions
from local.run_all.errors import StackError

TOP_K = 50
AT_ONCE = 2
INGEST_TIMEOUT_S = 1800.0
Row = dict[str, Any]


def main() -> int:
    """Command line. Returns the exit code."""
    arguments = _arguments()
    questions = read_questions(arguments.data / "queries.jsonl")[: arguments.limit]
    try:
        with running_app() as app:
            seconds = _ingest(app, arguments.data) if not arguments.keep else 0.0
            rows = list(_ask_all(app, questions))
    except (StackError, ValueError) as failed:
        print(failed, file=sys.stderr)
        return 2
    report = {"data": arguments.data.name, "ingest_seconds": seconds, **_summary(rows), "questions": rows}
    arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: value for name, value in report.items() if name != "questions"}, indent=1))
    return 0


def _ingest(app: RunningApp, folder: Path) -> float:
    began = time.monotonic()
    run = Ingesting(app, folder.name, AT_ONCE, INGEST_TIMEOUT_S)
    files = find_files(folder)
    for count, ended in enumerate(run.run(files), start=1):
        print(f"{count}/{len(files)} {ended.file.name}: {ended.seconds:.0f} s", flush=True)
        if not ended.in_time:
            raise ValueError(f"{ended.file.name} was not ready in time.")
    return round(time.monotonic() - began, 1)


def _ask_all(app: RunningApp, questions: Sequence[Question]) -> Iterator[Row]:
    headers = {"Authorization": f"Bearer {app.token}"}
    with (
        httpx.Client(base_url=f"{app.base_url}/api", headers=headers, timeout=60) as client,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        yield from pool.map(lambda question: _ask(client, question), questions)


def _ask(client: httpx.Client, question: Question) -> Row:
    row: Row = {"query_id": question.query_id, "kind": question.kind}
    pages = _ranking(client, question.text, None)
    row["document_recall_5"] = recall_at(documents_of(pages), documents_of(question.relevant), 5)
    if question.names_pages:
        row |= _page_measures(pages, question.relevant, "")
    if question.scope is not None:
        row |= _page_measures(_ranking(client, question.text, question.scope), question.relevant, "scoped_")
    return row


def _page_measures(pages: Sequence[Target], relevant: Sequence[Target], prefix: str) -> Row:
    return {
        f"{prefix}page_hit_1": hit_at(pages, relevant, 1),
        f"{prefix}page_recall_5": recall_at(pages, relevant, 5),
        f"{prefix}page_recall_10": recall_at(pages, relevant, 10),
        f"{prefix}page_ndcg_10": ndcg_at(pages, relevant, 10),
    }


def _ranking(client: httpx.Client, text: str, scope: str | None) -> list[Target]:
    body = {"query": text, "top_k": TOP_K, "filters": {"filename": scope} if scope else {}}
    answer = client.post("/search", json=body)
    answer.raise_for_status()
    return first_of_each((hit["filename"], hit["page_number"]) for hit in answer.json()["results"])


def _summary(rows: Sequence[Row]) -> Row:
    names = dict.fromkeys(name for row in rows for name in row if name not in ("query_id", "kind"))
    kinds = sorted({row["kind"] for row in rows})
    return {
        "count": len(rows),
        "measures": _means(rows, names),
        "by_kind": {kind: _means([row for row in rows if row["kind"] == kind], names) for kind in kinds},
    }


def _means(rows: Sequence[Row], names: dict[str, None]) -> Row:
    measured = {name: mean([row[name] for row in rows if name in row]) for name in names}
    return {"questions": len(rows), **measured}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.retrieval", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with documents and queries.jsonl")
    parser.add_argument("--out", type=Path, required=True, help="JSON report to write")
    parser.add_argument("--limit", type=int, default=None, help="ask only the first so many questions")
    parser.add_argument("--keep", action="store_true", help="the documents are in the app already")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
