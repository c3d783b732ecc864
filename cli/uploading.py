"""`upload`: a file or a folder, sent a few at a time, and followed until each is ready or has failed."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from cli.api import Api, CommandError
from cli.watching import Watch

LARGE_BYTES = 100_000_000  # the platform takes 210 MB in one request; larger files go straight to the storage
AT_ONCE = 4
_SIDECAR = ".acl.json"


@dataclass(frozen=True)
class UploadOptions:
    """How files are sent."""

    project_id: str | None = None
    acl: tuple[str, ...] | None = None
    timeout_s: float = 3600.0


@dataclass
class Outcome:
    """What became of one file. `status` is `refused` when it was not taken at all."""

    path: str
    doc_id: str | None = None
    status: str = "queued"
    reason: str = ""
    hint: str = ""


class _CountedFile:
    """A file that tells how much of it was read."""

    def __init__(self, file: BinaryIO, on_bytes: Callable[[int], None]) -> None:
        self._file = file
        self._on_bytes = on_bytes

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self._on_bytes(len(piece))
        return piece

    def __iter__(self) -> Iterator[bytes]:
        while piece := self.read(64 * 1024):
            yield piece

    def fileno(self) -> int:
        return self._file.fileno()  # by which its length is found


class Uploader:
    """One upload of many files."""

    def __init__(self, api: Api, options: UploadOptions) -> None:
        self._api = api
        self._options = options
        self._before: dict[str, str | None] = {}

    def send(self, path: Path, folder: str, on_bytes: Callable[[int], None]) -> Outcome:
        """Send one file. What the app refuses is an outcome, so that the others go on."""
        outcome = Outcome(path=str(Path(folder) / path.name))
        try:
            outcome.doc_id = self._send(path, folder, on_bytes)
        except (CommandError, OSError) as refused:
            outcome.status, outcome.reason = "refused", str(refused)
            outcome.hint = " ".join(refused.hints) if isinstance(refused, CommandError) else ""
        return outcome

    def follow(self, watch: Watch, outcomes: list[Outcome], on_change: Callable[[Outcome], None]) -> None:
        """Wait until all that were taken have ended."""
        by_id = {outcome.doc_id: outcome for outcome in outcomes if outcome.doc_id is not None}

        def look(doc_id: str, document: dict[str, Any]) -> None:
            outcome = by_id[doc_id]
            outcome.status = document["status"]
            outcome.reason = document.get("status_reason") or " ".join(document.get("warnings", ()))
            outcome.hint = document.get("hint") or ""
            on_change(outcome)

        waiting = {doc_id: self._before.get(doc_id) for doc_id in by_id}
        watch.wait(waiting, look, self._options.timeout_s)

    def _send(self, path: Path, folder: str, on_bytes: Callable[[int], None]) -> str:
        with path.open("rb") as opened:
            file = _CountedFile(opened, on_bytes)
            if path.stat().st_size > LARGE_BYTES:
                return self._send_past_the_app(path, folder, file)
            fields = {name: value for name, value in self._fields(folder).items() if value is not None}
            sent = self._api.call("POST", "/documents", data=fields, files={"file": (path.name, file)})
        return str(sent["doc_id"])

    def _send_past_the_app(self, path: Path, folder: str, file: _CountedFile) -> str:
        size_bytes = path.stat().st_size
        request = {"filename": path.name, "size_bytes": size_bytes, **self._fields(folder)}
        ticket = self._api.call("POST", "/documents/uploads", json=request)
        doc_id = str(ticket["doc_id"])
        self._before[doc_id] = self._begun(doc_id)
        headers = {**ticket["headers"], "Content-Length": str(size_bytes)}
        self._api.put_elsewhere(ticket["url"], file, headers)
        return doc_id

    def _fields(self, folder: str) -> dict[str, Any]:
        acl = None if self._options.acl is None else list(self._options.acl)
        return {"folder": folder, "project_id": self._options.project_id, "acl": acl}

    def _begun(self, doc_id: str) -> str | None:
        """When the version that there is was ingested: what follows must be told from it."""
        try:
            history = self._api.call("GET", f"/documents/{doc_id}")["history"]
        except CommandError:
            return None
        return str(history[0]["at"]) if history else None


def upload(
    api: Api, console: Console, output: Console, source: Path, options: UploadOptions, *, as_json: bool
) -> int:
    """Send and follow, with progress on `console`; report on `output`. 0 only if every file is ready.

    Raises:
        CommandError: there is nothing to send, or it took too long.
    """
    files = list(find_files(source))
    if not files:
        raise CommandError(f"There are no files in {source}.")
    uploader = Uploader(api, options)
    with Watch(api) as watch, _progress(console) as progress:
        size_bytes = sum(path.stat().st_size for path, _ in files)
        sending = progress.add_task("Sent", total=size_bytes, current="")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            outcomes = list(pool.map(lambda found: _send_one(uploader, found, progress, sending), files))
        taken = [outcome for outcome in outcomes if outcome.status != "refused"]
        progress.update(sending, completed=size_bytes)  # the refused ones were not read to the end
        ingesting = progress.add_task("Ready", total=len(taken), current="")
        uploader.follow(watch, taken, lambda outcome: _show(progress, ingesting, outcome))
    _report(output, outcomes, as_json=as_json)
    return 0 if all(outcome.status == "ready" for outcome in outcomes) else 1


def find_files(source: Path) -> Iterator[tuple[Path, str]]:
    """Files with the folder each goes to: those below a folder keep their place in it. Hidden ones stay."""
    if source.is_file():
        yield source, ""
        return
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source)
        hidden = any(part.startswith(".") for part in relative.parts)
        if path.is_file() and not hidden and not path.name.endswith(_SIDECAR):
            yield path, "/".join((source.resolve().name, *relative.parent.parts))


def _send_one(uploader: Uploader, found: tuple[Path, str], progress: Progress, sending: TaskID) -> Outcome:
    outcome = uploader.send(*found, on_bytes=lambda count: progress.update(sending, advance=count))
    progress.update(sending, current=outcome.path)
    return outcome


def _show(progress: Progress, task: TaskID, outcome: Outcome) -> None:
    ended = outcome.status in ("ready", "failed")
    progress.update(task, advance=1 if ended else 0, current=f"{outcome.path}: {outcome.status}")


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<6}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[current]}", markup=False),
        console=console,
    )


def _report(console: Console, outcomes: list[Outcome], *, as_json: bool) -> None:
    if as_json:
        console.print_json(json.dumps([vars(outcome) for outcome in outcomes]))
        return
    for outcome in outcomes:
        if outcome.status != "ready" or outcome.reason:
            style = "yellow" if outcome.status == "ready" else "red"
            told = f"{outcome.status}: {outcome.path}: {outcome.reason} {outcome.hint}".rstrip()
            console.print(Text(told, style=style))
    ready = sum(outcome.status == "ready" for outcome in outcomes)
    console.print(f"{ready} of {len(outcomes)} files are ready.")
