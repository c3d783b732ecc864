"""Reads an ingested document as users and search see it: its state in the API and its blocks in the index."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from azure.core.credentials import AzureKeyCredential
from azure.search.documents import SearchClient

from evals.ingest_report.ingesting import Ended
from evals.ingest_report.report import FileReport, ending_of
from evals.ingest_report.running_app import RunningApp
from evals.word_recall import word_recall
from shared.documents.views import DocumentDetail
from shared.platform.models import Model

_CALL_TIMEOUT_S = 60.0
_MAX_BLOCKS = 100_000


class _Indexed(Model):
    """The blocks of a document in the index, with their combined text."""

    blocks: int
    figures: int
    text: str


class Observer:
    """Reader of the API and the index that reports on ingested files."""

    def __init__(self, http: httpx.Client, index: SearchClient) -> None:
        self._http = http
        self._index = index

    def report(self, ended: Ended) -> FileReport:
        """Return the report on a file whose ingestion has ended or timed out."""
        size_bytes = ended.file.path.stat().st_size
        if ended.doc_id is None:
            return FileReport(
                file=ended.file.name,
                status="timed_out",
                reason="The app never took notice of the file.",
                seconds=ended.seconds,
                size_bytes=size_bytes,
            )
        detail = self._detail(ended.doc_id)
        phases = detail.history
        indexed = self._read_blocks(ended.doc_id)
        reason = detail.status_reason
        status = ending_of(detail.status, reason, detail.warnings) if ended.in_time else "timed_out"
        return FileReport(
            file=ended.file.name,
            status=status,
            reason=reason if ended.in_time else f"Still {detail.status} when its time was up.",
            hint=detail.hint,
            warnings=detail.warnings,
            seconds=ended.seconds,
            phase_seconds={phase.status: phase.seconds for phase in phases if phase.seconds is not None},
            model_calls={phase.status: phase.model_calls for phase in phases if phase.model_calls},
            size_bytes=size_bytes,
            pages=detail.page_count,
            blocks=indexed.blocks,
            figures=indexed.figures,
            word_recall=_recall(ended, indexed.text),
        )

    def _detail(self, doc_id: str) -> DocumentDetail:
        answer = self._http.get(f"/api/documents/{doc_id}").raise_for_status()
        return DocumentDetail.model_validate_json(answer.content)

    def _read_blocks(self, doc_id: str) -> _Indexed:
        rows = list(
            self._index.search(
                search_text="*",
                filter=f"doc_id eq '{doc_id}'",
                select=["block_type", "content", "heading_path", "image_caption"],
                top=_MAX_BLOCKS,
            )
        )
        # Many blocks have the same heading in their heading path, so each heading is counted once.
        headings = {part for row in rows for part in (row["heading_path"] or "").split(" > ")}
        texts = [row["content"] or row["image_caption"] or "" for row in rows]
        figures = sum(row["block_type"] == "image" for row in rows)
        return _Indexed(blocks=len(rows), figures=figures, text="\n".join([*texts, *sorted(headings)]))


@contextmanager
def observer(app: RunningApp) -> Iterator[Observer]:
    """Yield an observer that is connected to the app and its index."""
    headers = {"Authorization": f"Bearer {app.token}"}
    credential = AzureKeyCredential(app.search_key)
    with (
        httpx.Client(base_url=app.base_url, headers=headers, timeout=_CALL_TIMEOUT_S) as http,
        SearchClient(app.search_endpoint, app.content_index, credential) as index,
    ):
        yield Observer(http, index)


def _recall(ended: Ended, text: str) -> float | None:
    if ended.file.reference is None:
        return None
    return round(word_recall(ended.file.reference.read_text(encoding="utf-8", errors="replace"), text), 4)
