"""Sidecars of mirrored files: access list and SharePoint URL.

A sidecar names no owner, because an owner could change the list.
"""

import json
from collections.abc import Mapping

from shared.documents.ids import SIDECAR_SUFFIX
from shared.evidence.source_links import web_address
from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.errors import NotFoundError
from shared.platform.names import DOCUMENTS
from shared.sharepoint.grants import Access

MAX_SIDECAR_BYTES = 64_000  # the ingestion reads 64 KiB
HIDDEN_AT_ONCE = 16  # small reads and writes of storage, which allows 20,000 a second; unmeasured
_TRANSCRIPTS = (".vtt", ".srt")  # otherwise moments of a recording would link to the transcript itself


def sidecar_text(access: Access, name: str, web_url: str | None) -> str:
    """Return the content of a file's sidecar. An access list that is too long hides the document."""
    fields: dict[str, object] = {"acl": list(access.acl)}
    if web_url and web_address(web_url) and not name.lower().endswith(_TRANSCRIPTS):
        fields["source_url"] = web_url
    content = json.dumps(fields)
    return content if len(content) <= MAX_SIDECAR_BYTES else json.dumps({"acl": []})


async def read_sidecar(blobs: BlobStore, blob: str) -> tuple[str | None, str | None]:
    """Return the content and the etag of a file's sidecar, or None and None if it has none."""
    try:
        content, etag = await blobs.read_version(DOCUMENTS, blob + SIDECAR_SUFFIX)
    except NotFoundError:
        return None, None
    return content.decode("utf-8", "replace"), etag


def source_url(sidecar: str | None) -> str | None:
    """Return the SharePoint URL in a sidecar, or None."""
    url = _fields(sidecar).get("source_url")
    return url if isinstance(url, str) else None


async def hide_files(blobs: BlobStore, prefix: str) -> None:
    """Empty the access lists of all files whose names start with `prefix`.

    The container is listed, because an attempt that died may have stored files that no row names.
    """
    names = {blob.name.removesuffix(SIDECAR_SUFFIX) async for blob in blobs.list_blobs(DOCUMENTS, prefix)}
    await run_together(*(_hide(blobs, name) for name in sorted(names)), at_once=HIDDEN_AT_ONCE)


async def _hide(blobs: BlobStore, blob: str) -> None:
    content, _ = await read_sidecar(blobs, blob)
    fields = _fields(content)
    if fields.get("acl") != []:
        hidden = json.dumps({**fields, "acl": []})
        # Unconditional: a concurrent writer's version check fails, so it reads the permissions again.
        await blobs.write(DOCUMENTS, blob + SIDECAR_SUFFIX, hidden.encode())


def _fields(sidecar: str | None) -> Mapping[str, object]:
    try:
        fields = json.loads(sidecar or "{}")
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
