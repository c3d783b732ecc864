"""The status of the synchronised libraries, for administrators."""

from typing import Literal

from shared.sharepoint.models import LibraryList, LibraryView
from shared.sharepoint.services import SharePointServices
from shared.sharepoint.state import Library


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
