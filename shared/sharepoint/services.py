"""The subset of the app's services that the synchronisation needs."""

from typing import Protocol, TypeVar

from shared.platform.blobs import BlobStore
from shared.platform.errors import ConfigurationError
from shared.platform.settings import Settings
from shared.sharepoint.client import SharePointClient
from shared.sharepoint.state import LibraryStore

Part = TypeVar("Part")


class SharePointServices(Protocol):
    """Settings, blobs, and the two parts that exist only if libraries are configured."""

    settings: Settings
    blobs: BlobStore
    sharepoint: SharePointClient | None
    libraries: LibraryStore | None


def configured(part: Part | None) -> Part:
    """Return a service that exists because SHAREPOINT_LIBRARIES names a library.

    Raises:
        ConfigurationError: the setting is empty.
    """
    if part is None:
        raise ConfigurationError("SHAREPOINT_LIBRARIES is empty: no library is synchronised.")
    return part
