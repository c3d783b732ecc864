"""Pictures of documents in blob storage. Each carries its caption with it, so that none is captioned twice.

Pictures of a version that is not searchable yet lie in the work container; they are copied to the container
of figures right before their blocks are written, and go with their document.
"""

import asyncio
import base64
import binascii
from collections.abc import Collection, Sequence
from pathlib import Path

from shared.documents.models import Caption, Figure
from shared.platform.blobs import BlobProperties, BlobStore
from shared.platform.names import FIGURES, WORK

CAPTION_VERSION = "1"  # of what a caption is made from; a new one captions every figure again
_CAPTION, _VERSION = "caption", "captionversion"  # names of blob metadata: no dashes, lower case
_BY_RULE = "rule"


async def put_new(blobs: BlobStore, doc_id: str, figures: Sequence[Figure], folder: Path) -> None:
    """Keep the pictures that the parser left in `folder`, those that are not stored yet."""
    if not figures:
        return
    stored = {_key(found) for found in await _listed(blobs, doc_id)}
    for figure in figures:
        if figure.key not in stored:
            content = await asyncio.to_thread((folder / f"{figure.key}.png").read_bytes)
            await blobs.write(WORK, _work_name(doc_id, figure.key), content)


async def captions(blobs: BlobStore, doc_id: str) -> dict[str, Caption]:
    """The captions that are known, by the picture's key."""
    known: dict[str, Caption] = {}
    for found in await _listed(blobs, doc_id):
        caption = _caption(found)
        if caption is not None:
            known[_key(found)] = caption
    return known


async def picture(blobs: BlobStore, doc_id: str, key: str) -> bytes:
    """The PNG.

    Raises:
        NotFoundError: it is not stored.
    """
    if await blobs.properties(WORK, _work_name(doc_id, key)) is not None:
        return await blobs.read(WORK, _work_name(doc_id, key))
    return await blobs.read(FIGURES, _name(doc_id, key))


async def put_caption(blobs: BlobStore, doc_id: str, key: str, content: bytes, caption: Caption) -> None:
    """Keep a picture with its caption, until its block is written."""
    metadata = {
        _CAPTION: base64.b64encode(caption.text.encode()).decode(),
        _VERSION: CAPTION_VERSION if caption.by_model else _BY_RULE,
    }
    await blobs.write(WORK, _work_name(doc_id, key), content, metadata=metadata)


async def publish(blobs: BlobStore, doc_id: str, key: str) -> None:
    """Copy a picture with its caption from the work container to that of figures; twice does no harm."""
    found = await blobs.properties(WORK, _work_name(doc_id, key))
    if found is not None:
        content = await blobs.read(WORK, found.name)
        await blobs.write(FIGURES, _name(doc_id, key), content, metadata=found.metadata)


async def keep_only(blobs: BlobStore, doc_id: str, keys: Collection[str]) -> None:
    """Remove published pictures that are none of these."""
    async for found in blobs.list_blobs(FIGURES, f"{doc_id}/"):
        if _key(found) not in keys:
            await blobs.delete(FIGURES, found.name)


async def _listed(blobs: BlobStore, doc_id: str) -> list[BlobProperties]:
    """Published pictures, then those in work: what is known of the latter is newer."""
    published = [found async for found in blobs.list_blobs(FIGURES, f"{doc_id}/")]
    return published + [found async for found in blobs.list_blobs(WORK, _work_name(doc_id, "", suffix=""))]


def _caption(found: BlobProperties) -> Caption | None:
    """None when there is none, or one that was made in another way than today's."""
    version = found.metadata.get(_VERSION)
    if version not in (CAPTION_VERSION, _BY_RULE):
        return None
    try:
        text = base64.b64decode(found.metadata.get(_CAPTION, ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return Caption(text=text, by_model=version == CAPTION_VERSION)


def _key(found: BlobProperties) -> str:
    return found.name.rpartition("/")[2].removesuffix(".png")


def _name(doc_id: str, key: str) -> str:
    return f"{doc_id}/{key}.png"


def _work_name(doc_id: str, key: str, suffix: str = ".png") -> str:
    return f"ingest/{doc_id}/figures/{key}{suffix}"
