"""Version folders in the work container. Each contains all files derived from one version of a document.

`versions/{doc_id}/{content hash}-{pipeline}/` contains reading views, pictures, tables and the manifest, and
during an ingestion the results of its steps. The stored state of a document names its current version. A
version is deleted by deleting its folder.
"""

from collections.abc import Iterable

from shared.documents.ids import VERSIONS
from shared.documents.models import Manifest
from shared.platform.blobs import BlobStore, find_model, write_model
from shared.platform.names import WORK

_MANIFEST = "manifest.json"
_STEPS = "steps/"


def step_file(folder: str, name: str) -> str:
    """Return the blob name for the result of an ingestion step. Such results are deleted when the ingestion
    ends.
    """
    return f"{folder}{_STEPS}{name}"


def is_of_version(name: str, folder: str) -> bool:
    """Return whether a blob is a permanent file of the version stored in `folder`, rather than the result of
    an ingestion step.
    """
    return name.startswith(folder) and not name.startswith(folder + _STEPS)


async def read_manifest(blobs: BlobStore, folder: str) -> Manifest | None:
    """Return the manifest of the version in a folder, or None if there is none."""
    return await find_model(blobs, WORK, folder + _MANIFEST, Manifest)


async def write_manifest(blobs: BlobStore, folder: str, manifest: Manifest) -> None:
    """Create or replace the manifest of the version in a folder."""
    await write_model(blobs, WORK, folder + _MANIFEST, manifest)


async def stored_folders(blobs: BlobStore, doc_id: str) -> set[str]:
    """Return the version folders of a document that still contain files."""
    prefix = f"{VERSIONS}{doc_id}/"
    names = [blob.name async for blob in blobs.list_blobs(WORK, prefix)]
    return {f"{prefix}{name.removeprefix(prefix).partition('/')[0]}/" for name in names}


async def listed_blocks(blobs: BlobStore, folders: Iterable[str]) -> set[str]:
    """Return the ids of all blocks listed in the manifests of the given version folders. Missing manifests
    are skipped.
    """
    listed: set[str] = set()
    for folder in folders:
        manifest = await read_manifest(blobs, folder)
        listed |= set(manifest.block_ids) if manifest else set()
    return listed


async def remove_folder(blobs: BlobStore, folder: str) -> None:
    """Delete the folder of a version. Its blocks must be deleted first, because only the manifest in the
    folder lists them.
    """
    await blobs.delete_prefix(WORK, folder)


async def remove_all(blobs: BlobStore, doc_id: str) -> None:
    """Delete the version folders of a document, with all files in them."""
    await blobs.delete_prefix(WORK, f"{VERSIONS}{doc_id}/")
