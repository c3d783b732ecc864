"""Documents in and out of the stack's storage, as any client of the storage account would do it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobServiceClient, ContentSettings


def ensure_container(connection_string: str, name: str) -> None:
    """Create a blob container; one that exists is left as it is."""
    with BlobServiceClient.from_connection_string(connection_string) as service:
        try:
            service.create_container(name)
        except ResourceExistsError:
            return


def upload_changed(connection_string: str, container: str, files: Mapping[Path, dict[str, str]]) -> list[str]:
    """Upload files whose content or metadata differ from the blob of the same name.

    An unchanged file is left alone, so that a second start ingests nothing. Returns the names uploaded.
    """
    uploaded = []
    with BlobServiceClient.from_connection_string(connection_string) as service:
        for path, metadata in files.items():
            content = path.read_bytes()
            digest = bytearray(hashlib.md5(content, usedforsecurity=False).digest())
            blob = service.get_blob_client(container, path.name)
            try:
                there = blob.get_blob_properties()
                is_current = there.content_settings.content_md5 == digest and there.metadata == metadata
            except ResourceNotFoundError:
                is_current = False
            if not is_current:
                settings = ContentSettings(content_md5=digest)
                blob.upload_blob(content, overwrite=True, metadata=metadata, content_settings=settings)
                uploaded.append(path.name)
    return uploaded
