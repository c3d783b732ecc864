"""Waiting for ingestions: one stream tells of all documents; each end is confirmed by another look."""

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

from cli.api import Api
from cli.commands import program_name
from cli.errors import CommandError

ENDED = ("ready", "failed")
_SILENCE_S = 5.0  # after which a document is looked at without an event
_PAUSE_S = 0.2


class Watch:
    """Follows the changes of documents in its own thread. A context manager."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._told: dict[str, str] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True, name="document-events")

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()  # the thread ends with its stream, or with the program

    def wait(
        self,
        waiting: dict[str, str | None],
        on_change: Callable[[str, dict[str, Any]], None],
        timeout_s: float,
    ) -> None:
        """Until every document has ended; `on_change` gets each new look at one.

        Args:
            waiting: document id -> when its last ingestion began before the one that is waited for, if any.

        Raises:
            CommandError: they did not end in time.
        """
        waiting = dict(waiting)
        looked = dict.fromkeys(waiting, 0.0)
        deadline = time.monotonic() + timeout_s
        while waiting:
            now = time.monotonic()
            if now > deadline:
                raise CommandError(
                    f"{len(waiting)} documents are still being ingested.",
                    f"See `{program_name()} documents`.",
                )
            for doc_id in [
                one for one in waiting if self._told.pop(one, "") or now - looked[one] > _SILENCE_S
            ]:
                looked[doc_id] = now
                document = self._look(doc_id)
                if document is None or _began(document) == waiting[doc_id]:
                    continue
                on_change(doc_id, document)
                if document["status"] in ENDED:
                    del waiting[doc_id]
            time.sleep(_PAUSE_S)

    def _look(self, doc_id: str) -> dict[str, Any] | None:
        try:
            return self._api.call("GET", f"/documents/{doc_id}")
        except CommandError as failed:
            if failed.status == 404:  # sent to the storage, and its event has not come yet
                return None
            raise

    def _follow(self) -> None:
        last = 0
        while not self._stopped.is_set():
            try:
                for _, event in self._api.events("GET", "/documents/events", after=last):
                    if self._stopped.is_set():
                        return
                    if event is not None:
                        last = event.number
                        self._told[event.data["doc_id"]] = event.data.get("status", event.name)
            except (CommandError, httpx.HTTPError, RuntimeError):
                self._stopped.wait(1.0)  # looked at one by one meanwhile


def _began(document: dict[str, Any]) -> str | None:
    """When the last ingestion of a document began; "" before it has."""
    history = document.get("history") or []
    return str(history[0]["at"]) if history else ""
