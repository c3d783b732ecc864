"""Uploads files to the documents container, a few at a time, until all are ingested."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableClient
from azure.storage.blob import ContainerClient

from evals.ingest_report.corpus import CorpusFile
from evals.ingest_report.running_app import RunningApp
from shared.platform.names import DOCUMENTS, DOCUMENTS_TABLE

POLL_S = 0.3
_ENDS = ("ready", "failed")


@dataclass(frozen=True)
class Ended:
    """A file whose ingestion has ended or timed out. `doc_id` is None if the app never registered the
    file.
    """

    file: CorpusFile
    doc_id: str | None
    in_time: bool
    seconds: float


@dataclass(frozen=True)
class _InFlight:
    file: CorpusFile
    since: float


class Ingesting:
    """The ingestion of all files of a folder. Blobs are named `prefix/name`.

    Args:
        at_once: files in flight.
        timeout_s: limit per file.
    """

    def __init__(self, app: RunningApp, prefix: str, at_once: int, timeout_s: float) -> None:
        self._app = app
        self._prefix = prefix
        self._at_once = at_once
        self._timeout_s = timeout_s

    def run(self, files: Sequence[CorpusFile]) -> Iterator[Ended]:
        """Upload all files, and yield each one when its ingestion has ended."""
        waiting = list(reversed(files))
        in_flight: dict[str, _InFlight] = {}
        with _open(self._app) as (container, table):
            while waiting or in_flight:
                while waiting and len(in_flight) < self._at_once:
                    file = waiting.pop()
                    in_flight[self._drop(container, file)] = _InFlight(file, time.monotonic())
                time.sleep(POLL_S)
                self._app.check()
                for name, ended in self._find_ended(table, in_flight):
                    del in_flight[name]
                    yield ended

    def remove(self) -> None:
        """Delete the uploaded blobs. The app then removes the documents."""
        with _open(self._app) as (container, _):
            for blob in container.list_blobs(name_starts_with=f"{self._prefix}/"):
                container.delete_blob(blob.name)

    def _drop(self, container: ContainerClient, file: CorpusFile) -> str:
        name = f"{self._prefix}/{file.name}"
        with file.path.open("rb") as content:
            container.upload_blob(name, content, overwrite=True, metadata={"acl": "*"})
        return name

    def _find_ended(self, table: TableClient, in_flight: dict[str, _InFlight]) -> list[tuple[str, Ended]]:
        now = time.monotonic()
        seen = _statuses(table, set(in_flight))
        outcomes = []
        for name, flight in in_flight.items():
            doc_id, status = seen.get(name, (None, None))
            seconds = now - flight.since
            if status in _ENDS or seconds > self._timeout_s:
                outcomes.append((name, Ended(flight.file, doc_id, status in _ENDS, round(seconds, 2))))
        return outcomes


@contextmanager
def _open(app: RunningApp) -> Iterator[tuple[ContainerClient, TableClient]]:
    connection = app.storage_connection_string
    with (
        ContainerClient.from_connection_string(connection, DOCUMENTS) as container,
        TableClient.from_connection_string(connection, DOCUMENTS_TABLE) as table,
    ):
        yield container, table


def _statuses(table: TableClient, names: set[str]) -> dict[str, tuple[str, str]]:
    """Return (document id, status) by blob name, for all blobs that the app has registered."""
    try:
        # One query for all documents, because a query for each file would be too slow.
        rows = table.query_entities("RowKey eq 'document'", select=["PartitionKey", "blob_name", "status"])
        statuses = {row["blob_name"]: (row["PartitionKey"], row["status"]) for row in rows}
        return {name: statuses[name] for name in names if name in statuses}
    except ResourceNotFoundError:
        # The app creates the table during its first ingestion.
        return {}
