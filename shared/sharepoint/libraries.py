"""Resolution of configured URLs to libraries.

A URL names a site (all its libraries), a library, a folder of a library, or a OneDrive.
"""

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from shared.platform.errors import ConfigurationError, GroundworkError
from shared.platform.hashing import digest
from shared.platform.telemetry import get_logger
from shared.sharepoint.client import SharePointClient
from shared.sharepoint.graph_models import Drive, DriveItem
from shared.sharepoint.state import Library, LibraryStore

_SITE_FOLDERS = ("sites", "teams", "personal")


async def find_libraries(
    addresses: Sequence[str], client: SharePointClient, store: LibraryStore
) -> tuple[list[str], list[str]]:
    """Store a row for each library that the URLs name.

    Returns:
        the ids of configured libraries, and the ids of stored libraries that are no longer configured. If a
        URL can't be resolved at present, all stored libraries of its site count as configured, so that an
        outage deletes nothing.
    """
    stored = {library.library_id: library for library in await store.libraries()}
    configured: set[str] = set()
    for address in addresses:
        try:
            libraries = await _libraries_of(address, client)
        except GroundworkError as failed:
            get_logger().error("sharepoint.address_failed", error_type=failed.code)
            site = site_of(address).casefold()
            configured |= {
                one.library_id for one in stored.values() if site_of(one.address).casefold() == site
            }
            continue
        for library in libraries:
            configured.add(library.library_id)
            if library.library_id not in stored:
                await store.save_library(library, None)
                stored[library.library_id] = library
    return sorted(configured), sorted(stored.keys() - configured)


async def _libraries_of(address: str, client: SharePointClient) -> list[Library]:
    site_address = site_of(address)
    site = await client.site(site_address)
    drives = await client.drives(site.id)
    path = _path(address)
    if path == _path(site_address):
        return [_library(drive, address, site.web_url) for drive in drives]
    for drive in drives:
        root = _path(drive.web_url)
        if path == root:
            return [_library(drive, address, site.web_url)]
        if path.startswith(f"{root}/"):
            folder = await client.folder(drive.id, path.removeprefix(f"{root}/"))
            return [_library(drive, address, site.web_url, folder)]
    raise ConfigurationError("An address in SHAREPOINT_LIBRARIES matches no library on its site.")


def site_of(address: str) -> str:
    """Return the URL of the site that contains a library or folder."""
    parts = urlsplit(address)
    segments = [part for part in parts.path.split("/") if part]
    depth = 2 if segments and segments[0].lower() in _SITE_FOLDERS else 0
    return "/".join([f"{parts.scheme}://{parts.netloc}", *segments[:depth]])


def origin_of(address: str) -> str:
    """Return scheme and host of a URL in lower case, as Graph writes them."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}".lower()


def _path(address: str) -> str:
    return unquote(urlsplit(address).path).rstrip("/").casefold()


def _library(drive: Drive, address: str, site_url: str, folder: DriveItem | None = None) -> Library:
    owner = drive.owner.user.id if drive.owner.user and drive.drive_type == "business" else None
    return Library(
        library_id=digest("library", drive.id, folder.id if folder else "")[:32],
        address=address,
        drive_id=drive.id,
        site_url=site_url,
        name=drive.name,
        web_url=drive.web_url,
        owner=owner,
        folder_id=folder.id if folder else None,
    )
