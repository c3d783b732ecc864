"""Uploads one file: through the app or, if it is large, in blocks straight to storage.

Finished blocks are recorded, so an interrupted transfer resumes where it stopped, also after the program was
killed. Storage keeps the blocks for a week.
"""

import base64
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import httpx

from cli.api import Api
from cli.errors import CommandError

LARGE_BYTES = 4_000_000  # the app's MAX_UPLOAD_BYTES; larger files go straight to storage
BLOCK_BYTES = 8_000_000  # 4 s at 16 Mbit/s: that much is lost when a connection breaks
_TRIES = 6
_WAITS = 40  # for the app's limit by the minute, which other transfers share
_TIMEOUT = httpx.Timeout(120.0, connect=10.0)
_EXPIRED = 403
_UNKNOWN_BLOCKS = 400
_BROKEN = 500


class CountedFile:
    """A file that tells how much of it was read."""

    def __init__(self, file: BinaryIO, on_bytes: Callable[[int], None]) -> None:
        self._file = file
        self._on_bytes = on_bytes

    def read(self, size: int = -1) -> bytes:
        """Some bytes, reported to the progress display."""
        piece = self._file.read(size)
        self._on_bytes(len(piece))
        return piece

    def __iter__(self) -> Iterator[bytes]:
        while piece := self.read(64 * 1024):
            yield piece

    def fileno(self) -> int:
        """By which its length is found."""
        return self._file.fileno()


@dataclass
class Transfer:
    """How far a large file is. Another size or time of change is another file.

    Attributes:
        prefix: of the names of its blocks; another attempt has another one.
        blocks: how many have arrived, from the first on.
    """

    size_bytes: int
    changed_ns: int
    block_bytes: int
    prefix: str = field(default_factory=lambda: secrets.token_hex(6))
    blocks: int = 0

    def names(self, count: int) -> list[str]:
        """Names of the first blocks; all of one length, as the service wants them."""
        return [base64.b64encode(f"{self.prefix}-{at:06}".encode()).decode() for at in range(count)]

    @property
    def count(self) -> int:
        """How many blocks the whole file has."""
        return -(-self.size_bytes // self.block_bytes)


class Ticket:
    """An address to write to, which is requested again when it expires."""

    def __init__(self, api: Api, request: dict[str, Any]) -> None:
        self._api = api
        self._request = request
        self._given: dict[str, Any] = {}

    @property
    def doc_id(self) -> str:
        return str(self._taken()["doc_id"])

    def put(self, query: str, content: bytes) -> None:
        """Write; again after what may pass.

        Raises:
            CommandError: it was not taken.
        """
        failure: CommandError | None = None
        for attempt in range(_TRIES):
            try:
                answered = httpx.put(f"{self._taken()['url']}&{query}", content=content, timeout=_TIMEOUT)
            except httpx.HTTPError as failed:
                failure = CommandError(f"Storage refused the file ({type(failed).__name__}).")
            else:
                if answered.is_success:
                    return
                failure = CommandError(
                    f"The storage answered with HTTP {answered.status_code}.", status=answered.status_code
                )
                if answered.status_code == _EXPIRED:
                    self._given = {}
                elif answered.status_code < _BROKEN:
                    break
            time.sleep(min(2.0**attempt / 4, 8.0))
        raise failure or CommandError("Storage refused the file.")

    def _taken(self) -> dict[str, Any]:
        if not self._given:
            self._given = self._api.call("POST", "/documents/uploads", json=self._request)
        return self._given


def send_through(api: Api, path: Path, fields: dict[str, Any], on_bytes: Callable[[int], None]) -> str:
    """Send a file through the app; the document's id. It is read again when the app asks to wait.

    Raises:
        CommandError: it was refused.
    """
    fields = {name: value for name, value in fields.items() if value is not None}
    for _ in range(_WAITS):
        sent = 0

        def count(size: int) -> None:
            nonlocal sent
            sent += size
            on_bytes(size)

        try:
            with path.open("rb") as opened:
                files = {"file": (path.name, CountedFile(opened, count))}
                return str(api.call("POST", "/documents", data=fields, files=files)["doc_id"])
        except CommandError as refused:
            on_bytes(-sent)
            if not refused.may_repeat:
                raise
    raise CommandError(
        "The app asked to wait too often.", "Try again later; finished blocks are not sent again."
    )


def send_in_blocks(
    api: Api, path: Path, ticket: Ticket, on_bytes: Callable[[int], None], note: Callable[[str], None]
) -> None:
    """Send a large file; blocks that arrived before are left out.

    Raises:
        CommandError: it was refused, or broke off: what arrived is written down.
    """
    kept = _kept_path(api, path, ticket.doc_id)
    transfer = _begun(path, kept)
    if transfer.blocks:
        note(f"{path.name}: resumes after {transfer.blocks} of {transfer.count} blocks.")
        on_bytes(min(transfer.blocks * transfer.block_bytes, transfer.size_bytes))
    _send_blocks(path, ticket, transfer, kept, on_bytes)
    try:
        _commit(ticket, transfer)
    except CommandError as refused:
        if refused.status != _UNKNOWN_BLOCKS:
            raise
        # The storage has thrown them away, or somebody else wrote to the place: start again, once.
        kept.unlink(missing_ok=True)
        on_bytes(-transfer.size_bytes)
        transfer = _begun(path, kept)
        _send_blocks(path, ticket, transfer, kept, on_bytes)
        _commit(ticket, transfer)
    kept.unlink(missing_ok=True)


def _send_blocks(
    path: Path, ticket: Ticket, transfer: Transfer, kept: Path, on_bytes: Callable[[int], None]
) -> None:
    names = transfer.names(transfer.count)
    with path.open("rb") as file:
        file.seek(transfer.blocks * transfer.block_bytes)
        while transfer.blocks < transfer.count:
            block = file.read(transfer.block_bytes)
            ticket.put(f"comp=block&blockid={quote(names[transfer.blocks], safe='')}", block)
            transfer.blocks += 1
            _keep(transfer, kept)
            on_bytes(len(block))
    if _looks(path) != (transfer.size_bytes, transfer.changed_ns):
        kept.unlink(missing_ok=True)
        raise CommandError(f"{path.name} changed while it was sent.", "Send it again.")


def _commit(ticket: Ticket, transfer: Transfer) -> None:
    latest = "".join(f"<Latest>{name}</Latest>" for name in transfer.names(transfer.count))
    body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{latest}</BlockList>'
    ticket.put("comp=blocklist", body.encode())


def _begun(path: Path, kept: Path) -> Transfer:
    """The transfer that broke off, if it was of this very file; else a new one."""
    size_bytes, changed_ns = _looks(path)
    try:
        found = Transfer(**json.loads(kept.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        found = None
    if found and (found.size_bytes, found.changed_ns) == (size_bytes, changed_ns):
        return found
    return Transfer(size_bytes, changed_ns, BLOCK_BYTES)


def _looks(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _keep(transfer: Transfer, kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = kept.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(asdict(transfer)), encoding="utf-8")
    draft.replace(kept)


def _kept_path(api: Api, path: Path, doc_id: str) -> Path:
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    name = hashlib.sha256(f"{api.url}\n{doc_id}\n{path.resolve()}".encode()).hexdigest()[:32]
    return Path(base) / "groundwork" / "uploads" / f"{name}.json"
