"""Status of the synchronised libraries, for administrators."""

from datetime import datetime
from typing import Literal

from shared.sharepoint.models import MAX_EXAMPLES, Counts, LibraryList, LibraryView, SkippedItem
from shared.sharepoint.services import SharePointServices
from shared.sharepoint.state import Library, LibraryStore


async def view_libraries(services: SharePointServices) -> LibraryList:
    """Return every library. The list is empty while SHAREPOINT_LIBRARIES is."""
    if services.libraries is None:
        return LibraryList(libraries=())
    libraries = await services.libraries.libraries()
    return LibraryList(libraries=tuple(_view(library) for library in libraries))


def _view(library: Library) -> LibraryView:
    return LibraryView(
        library_id=library.library_id,
        name=library.name,
        web_url=library.web_url,
        address=library.address,
        status=_status(library),
        started_at=library.started_at,
        succeeded_at=library.succeeded_at,
        permissions_at=library.permissions_at,
        error=library.error,
        counts=library.counts,
    )


def _status(library: Library) -> Literal["waiting", "running", "current", "failed", "closed"]:
    if library.is_closed:
        return "closed"
    if library.error is not None:
        return "failed"
    if library.phase != "idle":
        return "running"
    return "waiting" if library.succeeded_at is None else "current"


async def count_items(store: LibraryStore, library_id: str) -> tuple[Counts, datetime | None]:
    """Count a library's files. Also return the earliest expiry of a stored document's grant."""
    files = hidden = 0
    skipped: dict[str, int] = {}
    hidden_examples: list[SkippedItem] = []
    skipped_examples: list[SkippedItem] = []
    expires_at: datetime | None = None
    async for item in store.items(library_id, "file"):
        files += item.blob is not None
        hidden += item.problem is not None
        if item.skipped is not None:
            skipped[item.skipped] = skipped.get(item.skipped, 0) + 1
        reason = item.problem or item.skipped
        examples = hidden_examples if item.problem is not None else skipped_examples
        if reason is not None and reason != "outside_folder" and len(examples) < MAX_EXAMPLES:
            examples.append(SkippedItem(name=item.name, reason=reason))
        if item.blob is not None and item.expires_at is not None:
            expires_at = min(item.expires_at, expires_at or item.expires_at)
    all_examples = (*hidden_examples, *skipped_examples)[:MAX_EXAMPLES]
    return Counts(files=files, hidden=hidden, skipped=skipped, examples=all_examples), expires_at
