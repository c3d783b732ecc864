"""Proof steps about documents: upload files, write and delete a file in the container, and narrow an access
list.
"""

import json
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from evals.azure_proof.client import AppClient
from evals.azure_proof.evidence import Outcome, check
from evals.azure_proof.target import World
from samples.generate import generate

Seen = TypeVar("Seen")
# Time limit for an ingestion, which includes the first start of a new deployment and allows for a busy
# machine.
READY_S = 900.0
_POLL_S = 0.5
# Number of requests sent after access was first denied. None of them may succeed.
_PROBES = 20
_ENDED = ("ready", "failed")


def upload_samples(world: World) -> Outcome:
    """Upload the ten samples and wait until each is ready or has failed."""
    with tempfile.TemporaryDirectory() as folder, world.client() as client:
        began = time.monotonic()
        doc_ids = {path.name: client.upload(path) for path in generate(Path(folder))}
        statuses = {name: _status_when_ended(client, doc_id) for name, doc_id in doc_ids.items()}
        seconds = time.monotonic() - began
    failed = {name: status for name, status in statuses.items() if status != "ready"}
    return Outcome(
        checks=(check("all ten samples are ready", failed or "all are ready", passed=not failed),),
        figures={"files": len(doc_ids), "seconds until all were ready": round(seconds, 1)},
    )


def drop_and_delete(world: World) -> Outcome:
    """Write a file to the container, ask about it, delete it, and wait until the app no longer returns it."""
    word = secrets.token_hex(4)
    name = f"proof/{word}.md"
    with tempfile.TemporaryDirectory() as folder, world.client() as client:
        me = str(client.call("GET", "/api/me")["user_id"])
        _drop(world, Path(folder), name, f"The beacon {word} is lit at 21:40 each night.", [me])
        began = time.monotonic()
        doc_id = _until(lambda: _ready_id(client, f"{word}.md"))
        ready_s = time.monotonic() - began
        run = client.ask(f"At what time is the beacon {word} lit?")
        answer = run["answer"]
        is_cited = any(one["filename"] == f"{word}.md" and one["verified"] for one in answer["citations"])
        world.target.delete_blob(name)
        began = time.monotonic()
        _until(lambda: client.document(doc_id) is None)
        gone_s = time.monotonic() - began
        world.target.delete_blob(f"{name}.acl.json")
    return Outcome(
        checks=(
            check("an answer quotes the new file", answer["text"], passed="21:40" in answer["text"]),
            check("its quotation is verified", is_cited, passed=is_cited),
            check("a deleted file is gone", f"after {gone_s:.1f} s", passed=True),
        ),
        figures={
            "seconds until a dropped file was ready": round(ready_s, 1),
            "seconds until a deleted file was gone": round(gone_s, 1),
        },
    )


def narrow_permission(world: World) -> Outcome:
    """Remove the reader from a file's access list, wait until the app hides the file, and check that it stays
    hidden.
    """
    word = secrets.token_hex(4)
    name = f"proof/{word}.md"
    with tempfile.TemporaryDirectory() as folder, world.client() as client:
        me = str(client.call("GET", "/api/me")["user_id"])
        _drop(world, Path(folder), name, f"The vault {word} opens with the code 7731.", [me])
        doc_id = _until(lambda: _ready_id(client, f"{word}.md"))
        was_seen = _sees(client, doc_id, word)
        _write_access(world, Path(folder), name, ["nobody-at-all"])
        began = time.monotonic()
        _until(lambda: not _sees(client, doc_id, word))
        seconds = time.monotonic() - began
        later = [_sees(client, doc_id, word) for _ in range(_PROBES)]
        world.target.delete_blob(name)
        world.target.delete_blob(f"{name}.acl.json")
    return Outcome(
        checks=(
            check("the reader finds the file before the change", was_seen, passed=was_seen),
            check(
                f"all {_PROBES} later requests hide the file",
                f"seen {sum(later)} times",
                passed=not any(later),
            ),
        ),
        figures={"seconds until the narrower list took effect": round(seconds, 1)},
    )


def _drop(world: World, folder: Path, name: str, text: str, readers: list[str]) -> None:
    _write_access(world, folder, name, readers)
    path = folder / "file.md"
    path.write_text(f"# A note of the proof kit\n\n{text}\n", encoding="utf-8")
    world.target.write_blob(name, path)


def _write_access(world: World, folder: Path, name: str, readers: list[str]) -> None:
    path = folder / "access.json"
    path.write_text(json.dumps({"acl": readers}), encoding="utf-8")
    world.target.write_blob(f"{name}.acl.json", path)


def _ready_id(client: AppClient, filename: str) -> str:
    return next(
        (str(one["doc_id"]) for one in client.documents_named(filename) if one["status"] == "ready"), ""
    )


def _sees(client: AppClient, doc_id: str, word: str) -> bool:
    """Return whether the caller can get the document or find it by search."""
    if client.document(doc_id) is not None:
        return True
    hits = client.call("POST", "/api/search", json={"query": f"vault {word}", "top_k": 5})["results"]
    return any(hit["doc_id"] == doc_id for hit in hits)


def _status_when_ended(client: AppClient, doc_id: str) -> str:
    def status() -> str:
        document = client.document(doc_id)
        word = "missing" if document is None else str(document["status"])
        return word if word in _ENDED else ""

    return _until(status)


def _until(look: Callable[[], Seen]) -> Seen:
    """Call `look` repeatedly until it returns a true value, and return that value.

    Raises:
        TimeoutError: if no result is truthy within READY_S seconds.
    """
    ends = time.monotonic() + READY_S
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > ends:
            raise TimeoutError(f"The expected change did not occur within {READY_S:.0f} s.")
        time.sleep(_POLL_S)
