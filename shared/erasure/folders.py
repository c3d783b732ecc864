"""Folders of a person's runs and summaries, found only by the prefix of their ids."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from pydantic import ValidationError

from shared.platform.blobs import BlobProperties, BlobStore, find_model
from shared.platform.concurrency import run_together
from shared.platform.models import Stored
from shared.platform.names import WORK
from shared.platform.telemetry import get_logger
from shared.runs.models import RunRequest
from shared.summaries.models import SummaryRequest

Asked = TypeVar("Asked", RunRequest, SummaryRequest)

_READ_AT_ONCE = 16  # blobs (unmeasured; each call takes a few milliseconds)
_REQUEST = "/request.json"  # as RunFiles and SummaryStore name it
_DOCUMENT_PART = re.compile(r"d([0-9]+)/")  # of a summary, as SummaryStore names it


@dataclass(frozen=True)
class Folder(Generic[Asked]):
    """The stored blobs of one run or summary.

    Attributes:
        names: of the blobs, relative to the folder.
        began_at: time of the request; without a readable one, when the oldest blob was written.
        request: None if it is missing or unreadable.
    """

    names: frozenset[str]
    began_at: datetime
    request: Asked | None


async def folders_of(
    blobs: BlobStore, root: str, prefix: str, kind: type[Asked], user_id: str
) -> dict[str, "Folder[Asked]"]:
    """Return the folders of a person's runs or summaries by id, including those without a readable request.

    Args:
        prefix: of the person's ids. Folders with another person's request are skipped.
    """
    listed: dict[str, list[BlobProperties]] = {}
    async for blob in blobs.list_blobs(WORK, root + prefix):
        listed.setdefault(blob.name.removeprefix(root).partition("/")[0], []).append(blob)
    names = [blob.name for stored in listed.values() for blob in stored if blob.name.endswith(_REQUEST)]
    requests = dict(await read_all(blobs, names, kind))
    now = datetime.now(UTC)
    folders: dict[str, Folder[Asked]] = {}
    for one, stored in listed.items():
        request = requests.get(f"{root}{one}{_REQUEST}")
        if request is not None and request.user.user_id != user_id:
            continue
        began_at = request.created_at if request else min(blob.modified_at or now for blob in stored)
        within = frozenset(blob.name.removeprefix(f"{root}{one}/") for blob in stored)
        folders[one] = Folder(within, began_at, request)
    return folders


def instances_of(summary_id: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the orchestrations of a summary and of its documents that have stored anything."""
    matches = (_DOCUMENT_PART.match(name) for name in names)
    numbers = sorted({int(match[1]) for match in matches if match})
    return (summary_id, *(f"{summary_id}:d{number}" for number in numbers))


async def read_all(blobs: BlobStore, names: Sequence[str], kind: type[Stored]) -> list[tuple[str, Stored]]:
    """Read blobs of the work container, skipping missing and unreadable ones."""
    values: list[tuple[str, Stored]] = []
    for start in range(0, len(names), _READ_AT_ONCE):
        part = names[start : start + _READ_AT_ONCE]
        read = await run_together(*(_read(blobs, name, kind) for name in part))
        values += [(name, one) for name, one in zip(part, read, strict=True) if one is not None]
    return values


async def _read(blobs: BlobStore, name: str, kind: type[Stored]) -> Stored | None:
    try:
        return await find_model(blobs, WORK, name, kind)  # None = deleted after it was listed
    except ValidationError:
        get_logger().error("user_erasure.unreadable", kind=kind.__name__)
        return None  # written by another version, or damaged
