"""Pictures of documents for users who may read them: access checks, signed URLs, and small copies for vision
models.

The stored state of the document is read each time, so that changed permissions apply at once.
"""

import asyncio
import base64
import io
from collections.abc import Collection, Iterable, Sequence

from PIL import Image

from shared.access.models import UserContext
from shared.access.security_filter import readable_databases
from shared.documents.figure_store import picture_blob
from shared.documents.services import DocumentServices
from shared.evidence.figures import figure_name, figure_path, name_of_path
from shared.platform.blobs import BlobProperties, BlobStore, SignedUrl
from shared.platform.concurrency import run_together
from shared.platform.errors import DocumentNotFoundError, GroundworkError
from shared.platform.language_models.models import Picture
from shared.platform.names import WORK
from shared.platform.telemetry import get_logger
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import Hit
from shared.retrieval.secured_index import SecuredIndex

# Longest side of a picture for a vision model. 768 pixels cost about 800 tokens with OpenAI's tiles or 1,000
# with patches, and labels stay readable.
_SEEN_SIDE_PX = 768
_SEEN_S = 3.0
# The API promises one hour. Pages stay open for a while, so URLs are valid for twice that time.
URL_LIFETIME_S = 2 * 3600.0


async def readable_figure(
    doc_id: str, name: str, user: UserContext, services: DocumentServices
) -> BlobProperties:
    """Return the properties of a picture's blob. Fail if the user may not read the document.

    Raises:
        DocumentNotFoundError: the picture is missing or the document is forbidden, without distinction.
    """
    file_name = figure_name(doc_id, name)
    readable = await readable_documents([doc_id], user, services) if file_name else frozenset()
    blob_names = await _blob_names([file_name], services) if file_name and readable else {}
    blob = await services.blobs.properties(WORK, blob_names[file_name]) if file_name in blob_names else None
    if blob is None:
        raise DocumentNotFoundError(
            f"The document {doc_id[:64]!r} has no figure {name[:80]!r}.",
            "The figure may belong to an older version, or you may not read the document.",
        )
    return blob


async def readable_documents(
    doc_ids: Collection[str], user: UserContext, services: DocumentServices
) -> frozenset[str]:
    """Return the subset of `doc_ids` that the user may read. The ids may refer to documents or databases.

    A citation of a database table contains the id of the database instead of a document id.
    """
    sources = readable_databases(user, services.settings.databases.sources)
    databases = frozenset(sources.keys() & set(doc_ids))
    documents = DocumentSearch(SecuredIndex(services.documents_index, user, services.documents))
    return databases | (await documents.get_many(sorted(set(doc_ids) - databases))).keys()


async def image_urls(hits: Iterable[Hit], services: DocumentServices) -> dict[str, str]:
    """Return a URL for the picture of each hit that has one, keyed by block id. The caller must have filtered
    the hits by permissions.

    URLs are valid for at least an hour. If signing fails, they point to this API, which requires
    authentication.
    """
    paths = {hit.block_id: path for hit in hits if (path := figure_path(hit.image_url))}
    names = {block_id: name_of_path(path) or "" for block_id, path in paths.items()}
    signed = await signed_urls(filter(None, names.values()), services)
    return {
        block_id: signed[names[block_id]].url if names[block_id] in signed else path
        for block_id, path in paths.items()
    }


async def signed_urls(names: Iterable[str], services: DocumentServices) -> dict[str, SignedUrl]:
    """Return a signed URL for each picture, keyed by its name `{doc_id}/{file name}`.

    Pictures whose URL can't be signed, because a service fails, are omitted.
    """
    try:
        blob_names = await _blob_names(names, services)
    except GroundworkError as failed:
        get_logger().warning("figure.sign_failed", error_type=failed.code)
        return {}
    signed = await run_together(*(_sign(name, services.blobs) for name in blob_names.values()))
    return {name: url for name, url in zip(blob_names, signed, strict=True) if url is not None}


async def _blob_names(names: Iterable[str], services: DocumentServices) -> dict[str, str]:
    """Return the blob names of pictures in the current versions of their documents, keyed by `{doc_id}/{file
    name}`.

    Documents without a version are omitted.
    """
    places = {name: name.partition("/")[::2] for name in dict.fromkeys(names)}
    doc_ids = list(dict.fromkeys(doc_id for doc_id, _ in places.values()))
    states = await run_together(*map(services.documents.get, doc_ids))
    folders = {state.doc_id: state.folder for state in states if state is not None and state.version_key}
    return {
        name: picture_blob(folders[doc_id], picture)
        for name, (doc_id, picture) in places.items()
        if doc_id in folders
    }


async def _sign(blob_name: str, blobs: BlobStore) -> SignedUrl | None:
    try:
        return await blobs.read_url(WORK, blob_name, URL_LIFETIME_S)
    except GroundworkError as failed:
        get_logger().warning("figure.sign_failed", error_type=failed.code)
        return None


async def pictures_for_model(hits: Sequence[Hit], services: DocumentServices) -> tuple[Picture, ...]:
    """Return small copies of the hits' pictures, for a vision model. The caller must have filtered the hits
    by permissions.

    Invalid pictures, and pictures that can't be read in time, are omitted.
    """
    pictures = await run_together(*(_picture_of(hit, services) for hit in hits))
    return tuple(picture for picture in pictures if picture is not None)


async def _picture_of(hit: Hit, services: DocumentServices) -> Picture | None:
    name = name_of_path(figure_path(hit.image_url) or "")
    if name is None:
        return None
    try:
        async with asyncio.timeout(_SEEN_S):
            blob_names = await _blob_names([name], services)
            if name not in blob_names:
                return None
            content = await services.blobs.read(WORK, blob_names[name])
            small = await asyncio.to_thread(_shrink, content)
    except (GroundworkError, TimeoutError, OSError, ValueError) as failed:
        get_logger().warning("figure.read_failed", doc_id=hit.doc_id, error_type=type(failed).__name__)
        return None
    url = f"data:image/jpeg;base64,{base64.b64encode(small).decode()}"
    return Picture(label=f"Picture of the block {hit.block_id}", url=url)


def _shrink(content: bytes) -> bytes:
    """Convert a picture to a JPEG that fits into 768 x 768 pixels. The same input always gives the same
    bytes.
    """
    with Image.open(io.BytesIO(content)) as picture:
        picture.thumbnail((_SEEN_SIDE_PX, _SEEN_SIDE_PX))
        # Drawings are often transparent, which JPEG does not support.
        flattened = Image.new("RGB", picture.size, "white")
        coloured = picture.convert("RGBA")
        flattened.paste(coloured, mask=coloured)
    output = io.BytesIO()
    flattened.save(output, "JPEG", quality=85)
    return output.getvalue()
