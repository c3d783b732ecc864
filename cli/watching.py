"""Waits for ingestions. One stream reports changes of all documents; the end of each ingestion is confirmed
by a request.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

from cli.api import Api
from cli.commands import program_name
from cli.errors import CommandError

ENDED = ("ready", "failed")
_SILENCE_S = 5.0  # if the stream is silent for this long, the status of the document is requested
_PAUSE_S = 0.2


class Watch:
    """A thread that reads the stream of document changes. It is a context manager."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._told: dict[str, str] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True, name="document-events")

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()  # the thread isn't joined: it ends with its stream or with the program

    def wait(
        self,
        waiting: dict[str, str | None],
        on_change: Callable[[str, dict[str, Any]], None],
        timeout_s: float,
    ) -> None:
        """Wait until every document is ready or has failed. `on_change` is called with each new state.

        Args:
            waiting: by document id, the start time of the ingestion that preceded the awaited one; None if
                there was none.

        Raises:
            CommandError: an ingestion didn't end in time.
        """
        waiting = dict(waiting)
        last_look = dict.fromkeys(waiting, 0.0)
        deadline = time.monotonic() + timeout_s
        while waiting:
            now = time.monotonic()
            if now > deadline:
                raise CommandError(
                    f"{len(waiting)} documents are still being ingested.",
                    f"See `{program_name()} documents`.",
                )
            for doc_id in [
                one for one in waiting if self._told.pop(one, "") or now - last_look[one] > _SILENCE_S
            ]:
                last_look[doc_id] = now
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
            if failed.status == 404:  # the file is in storage, but its event hasn't arrived
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
                self._stopped.wait(1.0)  # `wait` requests documents one by one in the meantime


def _began(document: dict[str, Any]) -> str | None:
    """Return the start time of the document's last ingestion, or "" if none has started."""
    history = document.get("history") or []
    return str(history[0]["at"]) if history else ""
