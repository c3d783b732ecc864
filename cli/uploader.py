"""Upload of several files: each is sent unless the app already has it, and followed until it is ingested.

Files whose content the app already has aren't sent again, but their access lists are updated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli import sending
from cli.api import Api
from cli.errors import CommandError
from cli.upload_files import content_hash
from cli.watching import ENDED, Watch, ingestion_start


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
