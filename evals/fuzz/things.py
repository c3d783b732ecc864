"""Ids of resources for the paths of requests. They belong to resources created for both users, or were found
in responses.
"""

import random
import threading
import time
from collections import defaultdict, deque
from typing import Any

import httpx

from samples.questions import FIRST_QUESTION

# Number of ids kept of each kind. Older resources have probably been deleted.
_KEPT = 40
_READY_S = 60.0
_KINDS = ("run_id", "thread_id", "summary_id", "doc_id")
_NOTES = (
    "The Heron 400 pump works at a maximum operating pressure of 6.5 bar. Its seal is changed once a year.",
    "# Valves\n\nValves are opened by hand. A valve that leaks is closed, marked and reported.",
)


class Things:
    """Thread-safe collection of resource ids, by the name of the path parameter."""

    def __init__(self) -> None:
        self._ids: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=_KEPT))
        self._lock = threading.Lock()

    def add(self, kind: str, thing: str) -> None:
        with self._lock:
            if thing not in self._ids[kind]:
                self._ids[kind].append(thing)

    def learn(self, body: Any) -> None:
        """Add the ids in the top-level fields of a response body."""
        if isinstance(body, dict):
            for kind in _KINDS:
                if isinstance(body.get(kind), str):
                    self.add(kind, body[kind])

    def choose(self, kind: str, chance: random.Random) -> str | None:
        """Return a random id for the path parameter `kind`, or None if there is none."""
        with self._lock:
            ids = sorted(self._ids[kind])
        return chance.choice(ids) if ids else None


def bring(user: httpx.Client, things: Things) -> None:
    """Create two documents, a run, a thread and a summary as the given user, and record their ids."""
    doc_ids = []
    for number, note in enumerate(_NOTES):
        response = user.post("/documents", files={"file": (f"note-{number}.md", note.encode())})
        response.raise_for_status()
        doc_ids.append(response.json()["doc_id"])
    for doc_id in doc_ids:
        _wait_until_ready(user, doc_id)
        things.add("doc_id", doc_id)
    things.learn(user.post("/chat", json={"question": FIRST_QUESTION.text, "stream": False}).json())
    things.learn(user.post("/threads", json={"title": "valves"}).json())
    things.learn(user.post("/summaries", json={"doc_ids": doc_ids}).json())
    things.add("asset", "start.js")


def _wait_until_ready(user: httpx.Client, doc_id: str) -> None:
    until = time.monotonic() + _READY_S
    while (status := user.get(f"/documents/{doc_id}").json()["status"]) != "ready":
        if time.monotonic() > until:
            raise TimeoutError(f"An uploaded note has the status {status}, not ready.")
        time.sleep(0.2)
