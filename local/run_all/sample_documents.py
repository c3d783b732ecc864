"""Brings the samples into a running stack, and waits until each can be asked about."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from local.run_all.api_client import ApiClient
from local.run_all.errors import CallRefusedError, StackError
from local.run_all.stack import DOCUMENTS_CONTAINER, LocalStack
from local.run_all.storage import upload_changed
from samples.acl import ACCESS, SAMPLE_USERS, SampleUser, readable_by
from samples.generate import generate

if TYPE_CHECKING:
    from pathlib import Path

READY_TIMEOUT_S = 300.0
POLL_S = 0.3
BAR_WIDTH = 30

Show = Callable[[int, int, str], None]


def upload_samples(stack: LocalStack) -> list[str]:
    """Write the samples below the data folder, and drop those that are new or changed into the container."""
    files = generate(stack.data / "samples")
    metadata: dict[Path, dict[str, str]] = {path: {"acl": ",".join(ACCESS[path.name])} for path in files}
    return upload_changed(stack.storage_connection_string, DOCUMENTS_CONTAINER, metadata)


def wait_until_ready(stack: LocalStack, show: Show) -> None:
    """Poll as the sample users, who together may read every sample, until all are ready.

    Raises:
        StackError: a document failed, a server ended, or it took longer than READY_TIMEOUT_S.
    """
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        stack.check()
        documents = _statuses(stack)
        _refuse_failed(documents)
        waiting = [name for name in sorted(ACCESS) if documents.get(name, {}).get("status") != "ready"]
        current = next((f"{name}: {documents[name]['status']}" for name in waiting if name in documents), "")
        show(len(ACCESS) - len(waiting), len(ACCESS), current)
        if not waiting:
            return
        if time.monotonic() > deadline:
            raise StackError(f"Not ready after {READY_TIMEOUT_S:.0f} s: {', '.join(waiting)}.")
        time.sleep(POLL_S)


def _statuses(stack: LocalStack) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for user in SAMPLE_USERS:
        for document in documents_of(stack, user):
            if document["filename"] in readable_by(user):
                found[document["filename"]] = document
    return found


def documents_of(stack: LocalStack, user: SampleUser) -> list[dict[str, Any]]:
    """What the API lists for a user; nothing while there is no index yet."""
    api = ApiClient(stack.base_url, stack.token(user))
    try:
        return list(api.get("/api/documents?limit=100")["documents"])
    except CallRefusedError as refused:
        if refused.status < 500:
            raise
        # The first ingestion is just making the indexes; the caller's deadline says how long that may take.
        return []


def _refuse_failed(documents: dict[str, dict[str, Any]]) -> None:
    for name, document in documents.items():
        if document.get("status") == "failed":
            raise StackError(f"{name} could not be ingested: {document.get('status_reason')}")


class ProgressBar:
    """Draws how many are done: in place on a terminal, a line per change elsewhere."""

    def __init__(self) -> None:
        self._shown = -1

    def __call__(self, done: int, total: int, current: str) -> None:
        """Show `done` of `total`, and what is being worked on."""
        filled = BAR_WIDTH * done // total
        line = f"  [{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {done}/{total}  {current}"
        if sys.stdout.isatty():
            print(f"\r{line:<100.100}", end="\n" if done == total else "", flush=True)
        elif done != self._shown:
            print(line, flush=True)
        self._shown = done
