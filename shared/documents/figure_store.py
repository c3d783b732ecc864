"""Storage of a document's pictures in the folder of its version. The blob metadata contains the caption, so
that no picture is captioned twice.
"""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from pathlib import Path

from shared.documents.models import Caption, Figure
from shared.platform.blobs import BlobProperties, BlobStore
from shared.platform.names import WORK

# Version of the rules for writing captions. Raising it captions every figure again.
CAPTION_VERSION = "1"
# Names of blob metadata must be lower case, without dashes.
_CAPTION, _VERSION = "caption", "captionversion"
_BY_RULE = "rule"
_FOLDER = "figures/"


def picture_blob(folder: str, name: str) -> str:
    """Return the blob name of a picture in the folder of a document version."""
    return f"{folder}{_FOLDER}{name}"


def is_picture(blob_name: str) -> bool:
    """Return whether a blob in the folder of a document version is a picture extracted from the document."""
    return f"/{_FOLDER}" in blob_name


async def put_new(
    blobs: BlobStore, folder: str, figures: Sequence[Figure], source: Path, *, earlier: str
) -> None:
    """Store the extracted pictures that the folder does not contain yet.

    Args:
        earlier: folder of the previous version, whose captions are reused.
    """
    if not figures:
        return
    stored = {_key(blob) for blob in await _list_pictures(blobs, folder)}
    captioned = {_key(blob): blob.metadata for blob in await _list_pictures(blobs, earlier)}
    for figure in figures:
        if figure.key not in stored:
            content = await asyncio.to_thread((source / f"{figure.key}.png").read_bytes)
            metadata = captioned.get(figure.key)
            await blobs.write(WORK, _name(folder, figure.key), content, metadata=metadata)


async def captions(blobs: BlobStore, folder: str) -> dict[str, Caption]:
    """Return the captions of the pictures in a version folder, keyed by picture key. Pictures without a
    current caption are left out.
    """
    captions_by_key: dict[str, Caption] = {}
    for blob in await _list_pictures(blobs, folder):
        caption = _caption(blob)
        if caption is not None:
            captions_by_key[_key(blob)] = caption
    return captions_by_key


async def picture(blobs: BlobStore, folder: str, key: str) -> bytes:
    """Return the PNG of a picture. Raises `NotFoundError` if it is missing."""
    return await blobs.read(WORK, _name(folder, key))


async def put_caption(blobs: BlobStore, folder: str, key: str, content: bytes, caption: Caption) -> None:
    """Store a picture together with its caption. An earlier picture or caption is replaced."""
    metadata = {
        _CAPTION: base64.b64encode(caption.text.encode()).decode(),
        _VERSION: CAPTION_VERSION if caption.by_model else _BY_RULE,
    }
    await blobs.write(WORK, _name(folder, key), content, metadata=metadata)


async def _list_pictures(blobs: BlobStore, folder: str) -> list[BlobProperties]:
    return [blob async for blob in blobs.list_blobs(WORK, folder + _FOLDER)]


def _caption(blob: BlobProperties) -> Caption | None:
    """Return the caption in the metadata of a blob. Return None if there is none, or if it was written by
    other caption rules.
    """
    version = blob.metadata.get(_VERSION)
    if version not in (CAPTION_VERSION, _BY_RULE):
        return None
    try:
        text = base64.b64decode(blob.metadata.get(_CAPTION, ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return Caption(text=text, by_model=version == CAPTION_VERSION)


def _key(blob: BlobProperties) -> str:
    return blob.name.rpartition("/")[2].removesuffix(".png")


def _name(folder: str, key: str) -> str:
    return picture_blob(folder, f"{key}.png")
