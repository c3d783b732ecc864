"""A person's summaries, newest first: one empty blob per summary in their own folder.

`summary-lists/{digest of the owner}/{counts down}-{summary_id}`. The entry is written after the request and
deleted before it, so an entry without a summary belongs to one being deleted.
"""

import hashlib
import re
from datetime import UTC, datetime

from shared.access.models import UserContext
from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.errors import CallerError, NotFoundError
from shared.platform.names import WORK
from shared.summaries.models import SummaryItem, SummaryList, SummaryRequest
from shared.summaries.store import SummaryStore

_FOLDER = "summary-lists/"
_LAST_MILLISECOND = 10**14  # names count down from here: the year 5138
_CURSOR = re.compile(r"[0-9]{14}-[A-Za-z0-9_-]{1,64}")


async def add_to_list(request: SummaryRequest, blobs: BlobStore) -> None:
    """Add the summary to its owner's list. Repeating the call has no effect."""
    await blobs.create(WORK, _name_of(request), b"")


async def remove_from_list(request: SummaryRequest, blobs: BlobStore) -> None:
    """Remove the summary from the list. A missing entry is ignored."""
    await blobs.delete(WORK, _name_of(request))


async def all_entries(blobs: BlobStore) -> dict[str, str]:
    """Return the blobs of all lists with their summary ids. Only for maintenance."""
    names = [blob.name async for blob in blobs.list_blobs(WORK, _FOLDER)]
    return {name: name.rpartition("/")[2].partition("-")[2] for name in names}


async def forget_list(owner_id: str, blobs: BlobStore) -> None:
    """Delete a person's list."""
    await blobs.delete_prefix(WORK, _folder_of(owner_id))


async def list_summaries(user: UserContext, blobs: BlobStore, limit: int, cursor: str = "") -> SummaryList:
    """Return the user's summaries, newest first.

    Raises:
        CallerError: the cursor is invalid.
    """
    if cursor and not _CURSOR.fullmatch(cursor):
        raise CallerError("Invalid cursor.", "Send the previous page's cursor unchanged.")
    folder = _folder_of(user.user_id)
    names: list[str] = []
    async for blob in blobs.list_blobs(WORK, folder):
        name = blob.name.removeprefix(folder)
        if name > cursor:
            names.append(name)
        if len(names) > limit:
            break
    page = names[:limit]
    found = await run_together(*(_item(name.partition("-")[2], user, blobs) for name in page))
    items = tuple(item for item in found if item is not None)
    return SummaryList(summaries=items, count=len(items), cursor=page[-1] if len(names) > limit else None)


async def _item(summary_id: str, user: UserContext, blobs: BlobStore) -> SummaryItem | None:
    store = SummaryStore(blobs, summary_id)
    try:
        request, end = await run_together(store.request(), store.end())
    except NotFoundError:
        return None
    if request.user.user_id != user.user_id:
        return None
    return SummaryItem(
        summary_id=summary_id,
        status=end.status if end else "running",
        focus=request.order.focus,
        language=request.order.language,
        document_count=len(request.order.doc_ids),
        created_at=request.created_at,
        finished_at=end.finished_at if end else None,
        error_type=end.error_type if end else None,
        status_url=f"/api/summaries/{summary_id}",
    )


def _folder_of(owner_id: str) -> str:
    return f"{_FOLDER}{hashlib.sha256(owner_id.encode()).hexdigest()}/"


def _name_of(request: SummaryRequest) -> str:
    elapsed = request.created_at - datetime(1970, 1, 1, tzinfo=UTC)
    counted = _LAST_MILLISECOND - int(elapsed.total_seconds() * 1000)
    return f"{_folder_of(request.user.user_id)}{counted:014d}-{request.summary_id}"
