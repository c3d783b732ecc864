"""Uploads the documents of a set to a project created for them, several at a time, and waits until all are
ingested.

Documents that the app already has, complete and with equal bytes, are skipped.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import httpx

from evals.evaluation.app import App
from evals.evaluation.question_set import QuestionSet, SourceFile

READY = "ready"
_ENDS = (READY, "failed")
_FIRST_POLL_S = 0.3
_LONGEST_POLL_S = 5.0


@dataclass(frozen=True)
class Ingested:
    """The result of ingesting one file. `status` is "ready", "failed", "refused", or "unfinished" after the
    timeout.

    Attributes:
        was_there: whether it was already complete with the same content.
    """

    filename: str
    status: str
    reason: str = ""
    was_there: bool = False

    @property
    def is_ready(self) -> bool:
        return self.status == READY


@dataclass(frozen=True)
class Ingestion:
    """The results for all files of a set.

    Attributes:
        seconds: from the first upload to the last end; 0 if nothing was uploaded.
    """

    documents: tuple[Ingested, ...] = ()
    seconds: float = 0.0

    @property
    def not_ready(self) -> tuple[Ingested, ...]:
        return tuple(document for document in self.documents if not document.is_ready)


def ingest(app: App, questions: QuestionSet, at_once: int, timeout_s: float) -> Ingestion:
    """Upload all files, `at_once` of them at a time, wait up to `timeout_s` seconds for each, and print the
    progress.
    """
    began = time.monotonic()
    ended = []
    total = len(questions.sources)
    for count, document in enumerate(_ingest_all(app, questions, at_once, timeout_s), start=1):
        ended.append(document)
        if not document.is_ready or count % max(total // 20, 1) == 0 or count == total:
            reason = f" - {document.reason}" if document.reason else ""
            line = f"{questions.name}: {count}/{total} {document.status} {document.filename}{reason}"
            print(f"{line} ({time.monotonic() - began:.0f} s)", flush=True)
    return Ingestion(tuple(ended), round(time.monotonic() - began, 1))


def _ingest_all(app: App, questions: QuestionSet, at_once: int, timeout_s: float) -> Iterator[Ingested]:
    def bring(source: SourceFile) -> Ingested:
        return _bring(app, source, questions.name, timeout_s)

    with ThreadPoolExecutor(at_once) as pool:
        waiting = [pool.submit(bring, source) for source in _largest_first(questions.sources)]
        yield from (future.result() for future in as_completed(waiting))


def _largest_first(sources: Sequence[SourceFile]) -> list[SourceFile]:
    """Return the files by size, largest first, so that the longest ingestion doesn't start last."""
    return sorted(sources, key=lambda source: -source.path.stat().st_size if source.path else 0)


def _bring(app: App, source: SourceFile, project_id: str, timeout_s: float) -> Ingested:
    began = time.monotonic()
    pause = _FIRST_POLL_S
    try:
        if _is_there(app, source, project_id):
            return Ingested(source.filename, READY, was_there=True)
        document = app.upload(source.filename, source.content(), project_id)
        while document["status"] not in _ENDS:
            if time.monotonic() - began > timeout_s:
                return Ingested(source.filename, "unfinished", f"still {document['status']}")
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_POLL_S)
            document = app.document(document["doc_id"])
    except httpx.HTTPError as refused:
        return Ingested(source.filename, "refused", error_message(refused))
    return Ingested(source.filename, document["status"], document.get("status_reason") or "")


def _is_there(app: App, source: SourceFile, project_id: str) -> bool:
    document = app.find(source.key, project_id)
    if document is None or document["status"] != READY:
        return False
    return app.content(document["doc_id"]) == source.content()


def error_message(failed: httpx.HTTPError) -> str:
    """Return the error message in the app's response, or the text of the exception."""
    if not isinstance(failed, httpx.HTTPStatusError):
        return f"{type(failed).__name__}: {failed}"
    try:
        detail = str(failed.response.json().get("detail") or "")
    except (ValueError, AttributeError):
        detail = failed.response.text[:200]
    return f"{failed.response.status_code}: {detail}"
