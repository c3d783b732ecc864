"""Search for the stored folders of a person's runs, based only on the prefix of the run ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ValidationError

from shared.platform.blobs import BlobProperties, BlobStore, find_model
from shared.platform.concurrency import run_together
from shared.platform.models import Stored
from shared.platform.names import WORK
from shared.platform.telemetry import get_logger
from shared.runs.models import RunRequest

# Number of blobs read concurrently (unmeasured; each call takes a few milliseconds).
_READ_AT_ONCE = 16
# The name that `RunFiles` gives to the request of a run.
_REQUEST = "/request.json"


@dataclass(frozen=True)
class Folder:
    """The stored blobs of a run.

    Attributes:
        names: names of the blobs, relative to the folder.
        began_at: time of the request or, if it can't be read, of the oldest blob.
        request: None if it is missing or unreadable.
    """

    names: frozenset[str]
    began_at: datetime
    request: RunRequest | None


async def folders_of(blobs: BlobStore, root: str, prefix: str, user_id: str) -> dict[str, Folder]:
    """Return the folders of a person's runs, keyed by run id. Folders without a readable request are
    included.

    Args:
        prefix: of the person's ids. Folders with another person's request are skipped.
    """
    listed: dict[str, list[BlobProperties]] = {}
    async for blob in blobs.list_blobs(WORK, root + prefix):
        listed.setdefault(blob.name.removeprefix(root).partition("/")[0], []).append(blob)
    names = [blob.name for stored in listed.values() for blob in stored if blob.name.endswith(_REQUEST)]
    requests = dict(await read_all(blobs, names, RunRequest))
    now = datetime.now(UTC)
    folders: dict[str, Folder] = {}
    for one, stored in listed.items():
        request = requests.get(f"{root}{one}{_REQUEST}")
        if request is not None and request.user.user_id != user_id:
            continue
        began_at = request.created_at if request else min(blob.modified_at or now for blob in stored)
        within = frozenset(blob.name.removeprefix(f"{root}{one}/") for blob in stored)
        folders[one] = Folder(within, began_at, request)
    return folders


async def read_all(blobs: BlobStore, names: Sequence[str], kind: type[Stored]) -> list[tuple[str, Stored]]:
    """Read blobs from the work container, and return the name and content of each. Missing and unreadable
    blobs are skipped.
    """
    values: list[tuple[str, Stored]] = []
    for start in range(0, len(names), _READ_AT_ONCE):
        part = names[start : start + _READ_AT_ONCE]
        read = await run_together(*(_read(blobs, name, kind) for name in part))
        values += [(name, one) for name, one in zip(part, read, strict=True) if one is not None]
    return values


async def _read(blobs: BlobStore, name: str, kind: type[Stored]) -> Stored | None:
    try:
        return await find_model(blobs, WORK, name, kind)  # None if the blob was deleted after it was listed
    except ValidationError:
        get_logger().error("user_erasure.unreadable", kind=kind.__name__)
        return None  # The blob is damaged, or another version of the app has written it.
