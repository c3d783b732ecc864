"""`upload`: send files and folders, several at a time, and wait until each is ready or has failed.

Files whose content the app already has aren't sent again, but their access lists are updated.
"""

import glob
import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

from cli import sending
from cli.api import Api
from cli.commands import Call, app, option
from cli.errors import DONE, NOT_ALL_WELL, CommandError
from cli.identity import identity_of
from cli.terminal import Terminal, clean
from cli.watching import ENDED, Watch, ingestion_start

AT_ONCE = 4
_SIDECAR = ".acl.json"
_HINTS = ".tables.yaml"
_WELL = ("ready", "unchanged")


@dataclass(frozen=True)
class UploadOptions:
    """Options of an upload.

    Attributes:
        folder: destination; the same folder and name are the same document.
        acl: who may read the files; None keeps existing lists and makes new files private.
        is_forced: also send unchanged files.
        user_id: the caller, if the app reports it.
        source_url: URL of the original, such as the recording of a transcript.
    """

    project_id: str | None = None
    acl: tuple[str, ...] | None = None
    timeout_s: float = 3600.0
    folder: str | None = None
    is_forced: bool = False
    user_id: str | None = None
    source_url: str | None = None


@dataclass
class Outcome:
    """The result for one file. Status `refused`: not accepted by the app; `unchanged`: already in the app."""

    path: str
    doc_id: str | None = None
    status: str = "queued"
    reason: str = ""
    hint: str = ""


@app.add("upload")
def upload(
    call: Call,
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", help="a file, a folder with everything below it, or a pattern such as '*.pdf'"
        ),
    ],
    *,
    project: Annotated[str | None, option("--project", "ID", "Project to which the documents belong")] = None,
    acl: Annotated[
        list[str] | None,
        option("--acl", "NAME", "User or group that may read the files. Repeat for several."),
    ] = None,
    folder: Annotated[
        str | None, option("--folder", "PATH", "Folder in the app (default: the name of the uploaded folder)")
    ] = None,
    source_url: Annotated[
        str | None, option("--source-url", "URL", "URL of the recording that belongs to a transcript")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Send unchanged files too")] = False,
    timeout: Annotated[
        float, option("--timeout", "SECONDS", "Time limit for the ingestion, in seconds")
    ] = 3600.0,
) -> int:
    """Send files and folders and wait until they are ready."""
    files = files_of(sources, folder)
    who = identity_of(call.api)
    options = UploadOptions(
        project,
        tuple(acl) if acl else None,
        timeout,
        folder,
        force,
        str(who["user_id"]) if who else None,
        source_url,
    )
    uploader = Uploader(call.api, options, call.terminal.note)
    with Watch(call.api) as watch:
        outcomes = _send_all(uploader, files, watch, call.terminal)
    _report(call.terminal, outcomes)
    return DONE if all(outcome.status in _WELL for outcome in outcomes) else NOT_ALL_WELL


class Uploader:
    """An upload of several files."""

    def __init__(
        self, api: Api, options: UploadOptions, note: Callable[[str], None] = lambda _text: None
    ) -> None:
        self._api = api
        self._options = options
        self._note = note
        self._before: dict[str, str | None] = {}

    def send(self, path: Path, folder: str, on_bytes: Callable[[int], None]) -> Outcome:
        """Send one file. If the app refuses it, return an outcome with the reason instead of raising an
        error, so that other files are still sent.
        """
        outcome = Outcome(path=str(Path(folder) / path.name))
        try:
            there = (
                None
                if self._options.is_forced or self._options.source_url
                else self._find_unchanged(path, folder)
            )
            if there is not None:
                on_bytes(path.stat().st_size)
                self._set_access(there)
                outcome.doc_id, outcome.status = str(there["doc_id"]), "unchanged"
            else:
                outcome.doc_id = self._send(path, folder, on_bytes)
        except (CommandError, OSError) as refused:
            outcome.status, outcome.reason = "refused", str(refused)
            outcome.hint = " ".join(refused.hints) if isinstance(refused, CommandError) else ""
        return outcome

    def follow(self, watch: Watch, outcomes: list[Outcome], on_change: Callable[[Outcome], None]) -> None:
        """Wait until the ingestion of all accepted files has ended. If waiting fails, the outcomes of the
        files that are not done yet get the reason.
        """
        # A table file and its hints are the same document.
        by_id: dict[str, list[Outcome]] = {}
        for outcome in outcomes:
            if outcome.doc_id is not None:
                by_id.setdefault(outcome.doc_id, []).append(outcome)

        def look(doc_id: str, document: dict[str, Any]) -> None:
            for outcome in by_id[doc_id]:
                outcome.status = document["status"]
                outcome.reason = document.get("status_reason") or " ".join(document.get("warnings", ()))
                outcome.hint = document.get("hint") or ""
                on_change(outcome)

        waiting = {doc_id: self._before.get(doc_id) for doc_id in by_id}
        try:
            watch.wait(waiting, look, self._options.timeout_s)
        except CommandError as failed:
            for outcome in outcomes:
                if outcome.status not in ENDED:
                    outcome.reason, outcome.hint = str(failed), " ".join(failed.hints)

    def _find_unchanged(self, path: Path, folder: str) -> dict[str, Any] | None:
        """Return the user's document with this file name and folder if it is ready and has the same content,
        otherwise None.
        """
        parameters = {"filename": path.name, "limit": 100}
        own_hash = ""
        for listed in self._api.call("GET", "/documents", params=parameters)["documents"]:
            document = self._api.call("GET", f"/documents/{listed['doc_id']}")
            is_here = document.get("folder") == folder and document["status"] == "ready"
            if not is_here or self._options.user_id not in (None, document.get("owner_id")):
                continue
            own_hash = own_hash or content_hash(path)
            if document.get("content_hash") == own_hash:
                return document
        return None

    def _set_access(self, document: dict[str, Any]) -> None:
        """Set the requested access list and project, unless the document already has them."""
        acl = document["acl"] if self._options.acl is None else list(self._options.acl)
        project = self._options.project_id or document.get("project_id")
        owner = document.get("owner_id")  # the owner may always read, even if not listed
        if {*acl, owner} != {*document["acl"], owner} or project != document.get("project_id"):
            change = {"acl": acl, **({"project_id": project} if project else {})}
            self._api.call("PUT", f"/documents/{document['doc_id']}/access", json=change)

    def _send(self, path: Path, folder: str, on_bytes: Callable[[int], None]) -> str:
        fields = self._fields(folder)
        size_bytes = path.stat().st_size
        if size_bytes <= sending.LARGE_BYTES:
            return sending.send_through(self._api, path, fields, on_bytes)
        request = {"filename": path.name, "size_bytes": size_bytes, **fields}
        ticket = sending.Ticket(self._api, request)
        self._before[ticket.doc_id] = self._ingestion_start(ticket.doc_id)
        sending.send_in_blocks(self._api, path, ticket, on_bytes, self._note)
        return ticket.doc_id

    def _fields(self, folder: str) -> dict[str, Any]:
        acl = None if self._options.acl is None else list(self._options.acl)
        fields = {"folder": folder, "project_id": self._options.project_id, "acl": acl}
        return fields | ({"source_url": self._options.source_url} if self._options.source_url else {})

    def _ingestion_start(self, doc_id: str) -> str | None:
        """Return the start time of the ingestion of the document's existing version, or None. It
        distinguishes that ingestion from the next one.
        """
        try:
            return ingestion_start(self._api.call("GET", f"/documents/{doc_id}"))
        except CommandError:
            return None


def files_of(sources: Sequence[Path], folder: str | None) -> list[tuple[Path, str]]:
    """Return (file, destination folder) for the files of all sources, each file once.

    Raises:
        CommandError: no files were found, or two of them would become the same document.
    """
    files: dict[tuple[str, str], Path] = {}
    for source in sources:
        for path, target in find_files(source, folder):
            other = files.setdefault((target, path.name), path)
            if other.resolve() != path.resolve():
                raise CommandError(
                    f"{other} and {path} would become the same document.",
                    "Upload them one after the other, each with its own --folder.",
                )
    if not files:
        raise CommandError(f"There are no files in {', '.join(map(str, sources))}.")
    return [(path, target) for (target, _), path in files.items()]


def find_files(source: Path, folder: str | None = None) -> Iterator[tuple[Path, str]]:
    """Yield each file and its destination folder, except hidden files.

    Files keep their path below the source folder. Patterns that the shell didn't expand are expanded here.

    Raises:
        CommandError: the file or folder doesn't exist, or nothing matches.
    """
    if not source.exists():
        paths = glob.glob(str(source), recursive=True)  # noqa: PTH207  # Path.glob takes no absolute pattern
        matches = sorted(map(Path, paths))
        if not matches:
            raise CommandError(f"There is no {source}.")
        for match in matches:
            if not match.name.endswith(_SIDECAR):
                yield from find_files(match, folder)
        return
    if source.is_file():
        yield source, folder or ""
        return
    root = source.resolve().name if folder is None else folder
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source)
        hidden = any(part.startswith(".") for part in relative.parts)
        if path.is_file() and not hidden and not path.name.endswith(_SIDECAR):
            yield path, "/".join(part for part in (root.strip("/"), *relative.parent.parts) if part)


def content_hash(path: Path) -> str:
    """Return the file's SHA-256, the same value that the app computes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _send_all(
    uploader: Uploader, files: list[tuple[Path, str]], watch: Watch, terminal: Terminal
) -> list[Outcome]:
    with _progress(terminal.progress) as progress:
        size_bytes = sum(path.stat().st_size for path, _ in files)
        task = progress.add_task("Sent", total=size_bytes, current="")

        def send(file: tuple[Path, str]) -> Outcome:
            return _send_one(uploader, file, progress, task)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                # The app accepts hints only for a table file that it already has.
                hints = [file for file in files if file[0].name.endswith(_HINTS)]
                others = [file for file in files if file not in hints]
                outcomes = [*pool.map(send, others)]
                outcomes += pool.map(send, hints)
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        queued = [outcome for outcome in outcomes if outcome.status == "queued"]
        progress.update(
            task, completed=size_bytes, current=""
        )  # fill the bar, because refused files were not read completely
        ingesting = progress.add_task("Ready", total=len(queued), current="")
        uploader.follow(watch, queued, lambda outcome: _show(progress, ingesting, outcome))
    return outcomes


def _send_one(uploader: Uploader, item: tuple[Path, str], progress: Progress, task: TaskID) -> Outcome:
    outcome = uploader.send(*item, on_bytes=lambda count: progress.update(task, advance=count))
    progress.update(task, current=_line(outcome.path))
    return outcome


def _show(progress: Progress, task: TaskID, outcome: Outcome) -> None:
    progress.update(
        task, advance=1 if outcome.status in ENDED else 0, current=_line(f"{outcome.path}: {outcome.status}")
    )


def _line(text: str) -> str:
    """Return a file name on one line; file names may contain line breaks."""
    return " ".join(clean(text).split())


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<6}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[current]}", markup=False),
        console=console,
    )


def _report(terminal: Terminal, outcomes: list[Outcome]) -> None:
    if terminal.as_json:
        terminal.json([vars(outcome) for outcome in outcomes])
        return
    for outcome in outcomes:
        if outcome.status not in _WELL or outcome.reason:
            line = f"{outcome.status}: {outcome.path}: {outcome.reason} {outcome.hint}".rstrip()
            terminal.say(line, "yellow" if outcome.status in _WELL else "red")
    well = sum(outcome.status in _WELL for outcome in outcomes)
    unchanged = sum(outcome.status == "unchanged" for outcome in outcomes)
    there = f" ({unchanged} were already there)" if unchanged else ""
    terminal.say(f"{well} of {len(outcomes)} files are ready{there}.")
