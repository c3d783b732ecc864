"""The baseline server: SQLite FTS5 and numpy behind the same HTTP API, as a developer could write it within a
day.

It supports only what the benchmark sends: uploads, and searches with text, one vector and the security
filter, which is evaluated for every query. `python -m benchmarks.search.baseline --port N --data FOLDER`.
"""

import argparse
import json
import os
import re
import sqlite3
import threading
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import anyio
import numpy as np
import numpy.typing as npt
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

THREADS = 4
RRF_CONSTANT = 60
_PRINCIPALS = re.compile(r"access_control_list/any\(acl: search\.in\(acl, '([^']*)', ','\)\)")
_TABLES = """
CREATE TABLE blocks (slot INTEGER PRIMARY KEY, body TEXT);
CREATE TABLE readers (principal TEXT, slot INTEGER, PRIMARY KEY (principal, slot)) WITHOUT ROWID;
CREATE VIRTUAL TABLE texts USING fts5(content, tokenize = 'porter unicode61', content = '');
"""


class Baseline:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.local()
        self._connection().executescript(_TABLES)
        self._matrix = np.empty((0, 0), dtype=np.float32)

    def upload(self, documents: list[dict[str, Any]]) -> int:
        connection = self._connection()
        first = len(self._matrix)
        vectors = np.array([document.pop("content_vector") for document in documents], dtype=np.float32)
        with connection:
            for slot, document in enumerate(documents, start=first):
                document.pop("@search.action", None)
                connection.execute("INSERT INTO blocks VALUES (?, ?)", (slot, json.dumps(document)))
                connection.execute(
                    "INSERT INTO texts (rowid, content) VALUES (?, ?)", (slot, document["content"])
                )
                readers = [(principal, slot) for principal in document["access_control_list"]]
                connection.executemany("INSERT INTO readers VALUES (?, ?)", readers)
        self._matrix = np.concatenate([self._matrix, vectors]) if first else vectors
        return len(documents)

    def search(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        principals = _PRINCIPALS.fullmatch(request.get("filter") or "")
        readers = principals[1].split(",") if principals else None
        rankings = []
        if request.get("search"):
            rankings.append(self._texts(request["search"], readers, 50))
        vectors = request.get("vectorQueries") or []
        rankings += [self._nearest(query["vector"], readers, query["k"]) for query in vectors]
        scores: dict[int, float] = {}
        for ranking in rankings:
            for rank, slot in enumerate(ranking):
                scores[slot] = scores.get(slot, 0.0) + 1 / (RRF_CONSTANT + rank)
        best = sorted(scores.items(), key=lambda one: -one[1])[: request.get("top", 50)]
        return [self._row(slot, score, request["select"].split(",")) for slot, score in best]

    def _texts(self, text: str, readers: list[str] | None, limit: int) -> list[int]:
        match = " OR ".join(f'"{word}"' for word in text.split())
        if readers is None:
            query = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"
            rows = self._connection().execute(query, (match, limit))
        else:
            marks = ",".join("?" * len(readers))
            query = (
                # The unary plus prevents SQLite from repeating the text search for every readable block.
                "SELECT rowid FROM texts WHERE texts MATCH ? AND +rowid IN"
                f" (SELECT slot FROM readers WHERE principal IN ({marks})) ORDER BY rank LIMIT ?"
            )
            rows = self._connection().execute(query, (match, *readers, limit))
        return [row[0] for row in rows]

    def _nearest(self, vector: list[float], readers: list[str] | None, k: int) -> list[int]:
        query = np.array(vector, dtype=np.float32)
        slots: npt.NDArray[np.int64] = np.arange(len(self._matrix))
        rows = self._matrix
        if readers is not None:
            marks = ",".join("?" * len(readers))
            neighbours = self._connection().execute(
                f"SELECT DISTINCT slot FROM readers WHERE principal IN ({marks})", readers
            )
            slots = np.fromiter((row[0] for row in neighbours), dtype=np.int64)
            rows = rows[slots]
        similarity = rows @ query
        top = np.argpartition(-similarity, min(k, len(slots) - 1))[:k]
        return [int(slot) for slot in slots[top[np.argsort(-similarity[top])]]]

    def _row(self, slot: int, score: float, select: list[str]) -> dict[str, Any]:
        (body,) = self._connection().execute("SELECT body FROM blocks WHERE slot = ?", (slot,)).fetchone()
        document = json.loads(body)
        return {"@search.score": score, **{name: document[name] for name in select}}

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._threads, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self._path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA cache_size = -65536")
            self._threads.connection = connection
        return connection


def create_app(path: Path) -> Starlette:
    baseline = Baseline(path)
    limiter = anyio.CapacityLimiter(THREADS)

    async def health(request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    async def upload(request: Request) -> JSONResponse:
        documents = (await request.json())["value"]
        return JSONResponse(
            {"count": await anyio.to_thread.run_sync(baseline.upload, documents, limiter=limiter)}
        )

    async def search(request: Request) -> JSONResponse:
        body = await request.json()
        return JSONResponse({"value": await anyio.to_thread.run_sync(baseline.search, body, limiter=limiter)})

    documents = "/indexes('{name}')/docs"
    return Starlette(
        routes=[
            Route("/health", health),
            Route(documents + "/search.index", upload, methods=["POST"]),
            Route(documents + "/search.post.search", search, methods=["POST"]),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.data.mkdir(parents=True, exist_ok=True)
    app = create_app(arguments.data / "baseline.sqlite")
    uvicorn.run(app, port=arguments.port, log_level="warning", access_log=False, timeout_keep_alive=300)


if __name__ == "__main__":
    main()
