"""Counts made by the stack's servers, independently of the app: model calls, and writes to the indexes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from local.run_all.stack import LocalStack

_INDEXES = ("content-blocks", "documents-metadata")


@dataclass
class Counts:
    """The counts caused by a block of code. They are empty until the block has ended.

    Attributes:
        chats, embeddings: number of requests to the model server.
        texts: number of texts in the embedding requests.
        writes: number of actions on the two indexes of documents, by index and kind.
    """

    chats: int = 0
    embeddings: int = 0
    texts: int = 0
    failures: int = 0
    writes: dict[str, dict[str, int]] = field(default_factory=dict)


@contextmanager
def counted(stack: LocalStack) -> Iterator[Counts]:
    """Yield the counts for the block. All work that the block causes must have ended when it exits."""
    model = f"http://127.0.0.1:{stack.ports.model}/v1/stats"
    search = f"{stack.search_url}/stats"
    model_key = {"Authorization": f"Bearer {stack.secrets.model_key}"}
    search_key = {"api-key": stack.secrets.search_key}
    with httpx.Client(timeout=60) as http:
        http.post(f"{search}/reset", headers=search_key).raise_for_status()
        before = _flat(http.get(model, headers=model_key).raise_for_status().json())
        counts = Counts()
        yield counts
        after = _flat(http.get(model, headers=model_key).raise_for_status().json())
        counts.chats, counts.embeddings, counts.texts, counts.failures = (
            now - then for now, then in zip(after, before, strict=True)
        )
        writes = http.get(search, headers=search_key).raise_for_status().json()["writes"]
        # The memory index is excluded, because the app may still be storing the answer of an earlier test.
        counts.writes = {index: writes[index] for index in _INDEXES if index in writes}


def _flat(stats: dict[str, Any]) -> tuple[int, int, int, int]:
    requests = stats["requests"]
    return requests["chat"], requests["embeddings"], stats["texts_embedded"], stats["failures_injected"]
