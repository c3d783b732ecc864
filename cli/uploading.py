"""`upload`: send files and folders, several at a time, and wait until each is ready or has failed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

from cli.commands import Call, app, option
from cli.errors import DONE, NOT_ALL_WELL
from cli.identity import identity_of
from cli.terminal import Terminal, clean
from cli.upload_files import files_of
from cli.uploader import Outcome, Uploader, UploadOptions
from cli.watching import ENDED, Watch

AT_ONCE = 4
_HINTS = ".tables.yaml"
_WELL = ("ready", "unchanged")


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
        project_id=project,
        acl=tuple(acl) if acl else None,
        timeout_s=timeout,
        folder=folder,
        is_forced=force,
        user_id=str(who["user_id"]) if who else None,
        source_url=source_url,
    )
    uploader = Uploader(call.api, options, call.terminal.note)
    with Watch(call.api) as watch:
        outcomes = _send_all(uploader, files, watch, call.terminal)
    _report(call.terminal, outcomes)
    return DONE if all(outcome.status in _WELL for outcome in outcomes) else NOT_ALL_WELL


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
        # Fill the bar, because refused files were not read completely.
        progress.update(task, completed=size_bytes, current="")
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
