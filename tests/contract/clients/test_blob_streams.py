"""Streams, listings and signed URLs of `BlobStore`, in memory and with Azurite."""

import asyncio
import gzip
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.storage.blob import BlobClient, ContentSettings

from shared.platform.blobs import BlobStore
from shared.platform.connections import UPLOAD_PIECE_BYTES
from shared.platform.errors import ConflictError, NotFoundError
from shared.wiring import Connections
from tests.servers import Azurite, unique_name

contract = pytest.mark.contract


@pytest.fixture
async def container(store: BlobStore) -> str:
    name = unique_name("streams")
    await store.ensure_containers([name])
    return name


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def breaking(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    raise ConnectionResetError("the sender went away")


async def read(
    store: BlobStore, container: str, name: str, first: int = 0, length: int | None = None
) -> bytes:
    properties = await store.properties(container, name)
    assert properties is not None
    stream = store.chunks(container, name, etag=properties.etag, first=first, length=length)
    return b"".join([piece async for piece in stream])


async def test_what_comes_in_pieces_is_one_blob(store: BlobStore, container: str) -> None:
    part = bytes(range(256)) * 1000  # the block size is not a multiple of this size
    properties = await store.write_stream(container, "über/a 'b'.pdf", pieces(*[part] * 20))
    assert (properties.size_bytes, properties.content_type) == (len(part) * 20, "application/pdf")
    assert await store.properties(container, "über/a 'b'.pdf") == properties
    assert await store.read(container, "über/a 'b'.pdf") == part * 20


async def test_nothing_but_an_end_is_an_empty_blob(store: BlobStore, container: str) -> None:
    assert (await store.write_stream(container, "empty.txt", pieces())).size_bytes == 0
    assert await read(store, container, "empty.txt") == b""


async def test_a_stream_that_breaks_leaves_no_blob(store: BlobStore, container: str) -> None:
    with pytest.raises(ConnectionResetError):
        await store.write_stream(container, "new.bin", breaking(b"x" * 3_000_000))
    assert await store.properties(container, "new.bin") is None


async def test_a_stream_that_breaks_leaves_the_old_version_as_it_was(
    store: BlobStore, container: str
) -> None:
    await store.write(container, "a.bin", b"old", metadata={"owner_id": "u1"})
    before = await store.properties(container, "a.bin")
    with pytest.raises(ConnectionResetError):
        await store.write_stream(container, "a.bin", breaking(b"x" * 3_000_000))
    assert await store.read(container, "a.bin") == b"old"
    assert await store.properties(container, "a.bin") == before


@contract
async def test_simultaneous_uploads_of_one_blob_never_mix_their_contents(to_storage: Connections) -> None:
    store, container, name = BlobStore(to_storage.blobs), unique_name("streams"), "a.bin"
    await store.ensure_containers([container])
    block = UPLOAD_PIECE_BYTES
    # Both uploads have sent their first block before one ends.
    has_sent, may_end = asyncio.Event(), asyncio.Event()

    async def first() -> AsyncIterator[bytes]:
        yield b"1" * block
        await has_sent.wait()
        yield b"1"

    async def second() -> AsyncIterator[bytes]:
        yield b"2" * block
        has_sent.set()
        await may_end.wait()
        yield b"2"

    loser = asyncio.create_task(store.write_stream(container, name, second()))
    await store.write_stream(container, name, first())
    assert await store.read(container, name) == b"1" * (block + 1)
    may_end.set()
    with pytest.raises(ConflictError, match="at the same time"):
        await loser
    assert await store.read(container, name) == b"1" * (block + 1)


async def test_a_blob_is_read_in_pieces_from_anywhere(store: BlobStore, container: str) -> None:
    content = bytes(range(256)) * 40_000  # 10 MB, uploaded in three pieces
    await store.write(container, "large.bin", content)
    assert await read(store, container, "large.bin") == content
    assert await read(store, container, "large.bin", 0, 17) == content[:17]
    assert await read(store, container, "large.bin", 5_000_001) == content[5_000_001:]
    assert await read(store, container, "large.bin", 5_000_001, 17) == content[5_000_001:5_000_018]


async def test_a_reader_of_a_replaced_or_deleted_version_is_told(store: BlobStore, container: str) -> None:
    await store.write(container, "a.txt", b"old")
    properties = await store.properties(container, "a.txt")
    assert properties is not None
    await store.write(container, "a.txt", b"new")
    with pytest.raises(ConflictError):
        await anext(store.chunks(container, "a.txt", etag=properties.etag))
    with pytest.raises((NotFoundError, ConflictError)):
        await anext(store.chunks(container, "none.txt", etag=properties.etag))


async def test_a_listing_names_blobs_in_order_with_what_is_known_of_them(
    store: BlobStore, container: str
) -> None:
    for name in ("b/2.txt", "a.txt", "b/1.txt"):
        await store.write(container, name, b"x", metadata={"Acl": "hr"})
    listed = [blob async for blob in store.list_blobs(container)]
    assert [blob.name for blob in listed] == ["a.txt", "b/1.txt", "b/2.txt"]
    assert listed[0] == await store.properties(container, "a.txt")
    assert [blob.name async for blob in store.list_blobs(container, "b/")] == ["b/1.txt", "b/2.txt"]
    assert [blob async for blob in store.list_blobs("no-such-container")] == []


async def test_a_version_is_removed_and_no_later_one(store: BlobStore, container: str) -> None:
    await store.write(container, "a.txt", b"x")
    first = await store.properties(container, "a.txt")
    assert first is not None
    assert first.modified_at is not None
    await store.write(container, "a.txt", b"y")
    assert not await store.delete_version(container, "a.txt", etag=first.etag)
    second = await store.properties(container, "a.txt")
    assert second is not None
    assert await store.delete_version(container, "a.txt", etag=second.etag)
    assert not await store.delete_version(container, "a.txt", etag=second.etag)
    assert await store.properties(container, "a.txt") is None


async def test_a_listing_gives_metadata_that_are_empty(store: BlobStore, container: str) -> None:
    await store.write(container, "a.txt", b"x", metadata={"acl": "", "owner_id": "u1"})
    (listed,) = [blob async for blob in store.list_blobs(container)]
    assert listed.metadata == {"acl": "", "owner_id": "u1"}


async def test_a_signed_address_tells_when_it_ends(store: BlobStore, container: str) -> None:
    signed = await store.read_url(container, "a.txt", 3600)
    left = signed.expires_at - datetime.now(UTC)
    assert timedelta(minutes=55) < left <= timedelta(hours=1)
    assert signed.url not in repr(signed)


@contract
async def test_a_signed_address_opens_one_blob_for_one_purpose(to_storage: Connections) -> None:
    store = BlobStore(to_storage.blobs)
    container = unique_name("signed")
    await store.ensure_containers([container])
    upload = await store.upload_url(container, "ü 'x'.txt", 600)
    assert _put(upload.url, b"hello") == 201
    assert await store.read(container, "ü 'x'.txt") == b"hello"
    read_only = await store.read_url(container, "ü 'x'.txt", 600)
    assert _get(read_only.url) == b"hello"
    assert _put(read_only.url, b"changed") == 403
    assert _put(upload.url.replace(".txt", ".pdf"), b"elsewhere") == 403
    assert _put((await store.upload_url(container, "late.txt", -1)).url, b"too late") == 403


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answered:
        return bytes(answered.read())


def _put(url: str, content: bytes) -> int:
    headers = {"x-ms-blob-type": "BlockBlob", "Content-Type": "text/plain"}
    request = urllib.request.Request(url, data=content, headers=headers, method="PUT")
    try:
        with urllib.request.urlopen(request, timeout=30) as answered:
            return int(answered.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


@contract
@pytest.mark.parametrize("content", [b"plain words", gzip.compress(bytes(1_000_000))], ids=["a lie", "true"])
async def test_a_blob_is_read_as_it_is_stored_whatever_its_encoding_says(
    azurite: Azurite, to_storage: Connections, tmp_path: Path, content: bytes
) -> None:
    store, container = BlobStore(to_storage.blobs), unique_name("encoded")
    await store.ensure_containers([container])
    with BlobClient.from_connection_string(azurite.connection_string, container, "a.txt") as blob:
        blob.upload_blob(content, content_settings=ContentSettings(content_encoding="gzip"))
    assert await store.read(container, "a.txt") == content
    await store.download(container, "a.txt", tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_bytes() == content
