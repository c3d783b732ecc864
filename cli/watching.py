"""Waits for ingestions. One stream reports changes of all documents; the end of each ingestion is confirmed
by a request.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from cli.api import Api
from cli.commands import program_name
from cli.errors import CommandError, NoConnectionError

ENDED = ("ready", "failed")
_SILENCE_S = 5.0  # if the stream is silent for this long, the status of the document is requested
_PAUSE_S = 0.2
_GIVE_UP_S = 90.0  # give up if the app doesn't respond for this long; a host restarts faster
_NOT_FOUND = 404
_BROKEN = 500


class Watch:
    """A thread that reads the stream of document changes. It is a context manager."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._changed: set[str] = set()
        self._responded_at = 0.0
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
            CommandError: an ingestion didn't end in time, or the app stopped responding.
        """
        waiting = dict(waiting)
        requested_at = dict.fromkeys(waiting, float("-inf"))
        self._responded_at = time.monotonic()
        deadline = self._responded_at + timeout_s
        while waiting:
            now = time.monotonic()
            if now > deadline:
                raise CommandError(
                    f"Still being ingested after {timeout_s:.0f} s.", f"See `{program_name()} documents`."
                )
            for doc_id in [
                one for one in waiting if one in self._changed or now - requested_at[one] > _SILENCE_S
            ]:
                requested_at[doc_id] = now
                self._changed.discard(doc_id)
                document = self._request(doc_id)
                if document is None or _is_of_earlier_ingestion(document, waiting[doc_id]):
                    continue
                on_change(doc_id, document)
                if document["status"] in ENDED:
                    del waiting[doc_id]
            time.sleep(_PAUSE_S)

    def _request(self, doc_id: str) -> dict[str, Any] | None:
        """Return the document, or None if the app doesn't know it yet or is restarting."""
        try:
            document = self._api.call("GET", f"/documents/{doc_id}")
        except CommandError as failed:
            if failed.status == _NOT_FOUND:  # the file is in storage, but its event hasn't arrived
                return None
            is_outage = isinstance(failed, NoConnectionError) or (failed.status or 0) >= _BROKEN
            if is_outage and time.monotonic() - self._responded_at <= _GIVE_UP_S:
                return None
            raise
        self._responded_at = time.monotonic()
        return document

    def _follow(self) -> None:
        last = 0
        while not self._stopped.is_set():
            try:
                for _, event in self._api.events("GET", "/documents/events", after=last):
                    if self._stopped.is_set():
                        return
                    if event is not None:
                        last = event.number
                        self._changed.add(event.data["doc_id"])
            except (CommandError, httpx.HTTPError, RuntimeError):
                self._stopped.wait(1.0)  # `wait` requests documents one by one in the meantime
            self._stopped.wait(_PAUSE_S)


def ingestion_start(document: Mapping[str, Any]) -> str:
    """Return the start time of the document's last ingestion, or "" if none has started."""
    history = document.get("history") or []
    return str(history[0]["at"]) if history else ""


def _is_of_earlier_ingestion(document: Mapping[str, Any], earlier_start: str | None) -> bool:
    """Return whether the status of a document was set by an ingestion before the awaited one."""
    # Hints and files that arrive during an ingestion are read by the next one.
    has_another = document["status"] in ENDED and bool(document.get("is_processing"))
    return has_another or ingestion_start(document) == earlier_start
