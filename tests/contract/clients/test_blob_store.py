"""The contract of `BlobStore`, in memory and with Azurite."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shared.platform.blobs import BlobStore
from shared.platform.errors import AuthenticationError, ConflictError, DependencyError, NotFoundError
from tests.contract.clients.conftest import NOWHERE, Connect
from tests.servers import Azurite, unique_name

if TYPE_CHECKING:
    pass

contract = pytest.mark.contract


@pytest.fixture
async def container(store: BlobStore) -> str:
    name = unique_name("blobs")
    await store.ensure_containers([name])
    await store.ensure_containers([name])
    return name


async def test_what_was_written_is_read_and_described(store: BlobStore, container: str) -> None:
    await store.write(container, "über uns/plan 1.png", b"\x89PNG", metadata={"Owner_Id": "u1"})
    assert await store.read(container, "über uns/plan 1.png") == b"\x89PNG"
    properties = await store.properties(container, "über uns/plan 1.png")
    assert properties is not None
    assert (properties.name, properties.size_bytes, properties.content_type) == (
        "über uns/plan 1.png",
        4,
        "image/png",
    )
    assert properties.metadata == {"owner_id": "u1"}


@pytest.mark.parametrize("name", ["x/../b.txt", "../{0}/b.txt", "./b.txt", "..\\{0}\\b.txt"])
async def test_a_name_that_looks_like_a_way_to_another_blob_leads_nowhere(
    store: BlobStore, container: str, name: str
) -> None:
    await store.write(container, "b.txt", b"of somebody else")
    name = name.format(container)
    assert await store.properties(container, name) is None
    with pytest.raises(NotFoundError):
        await store.read(container, name)
    await store.delete(container, name)
    assert await store.read(container, "b.txt") == b"of somebody else"


async def test_the_first_to_create_a_blob_wins(store: BlobStore, container: str) -> None:
    results = await asyncio.gather(*(store.create(container, "a.json", b"%d" % n) for n in range(5)))
    assert results.count(True) == 1
    assert await store.read(container, "a.json") == b"%d" % results.index(True)
    assert not await store.create(container, "a.json", b"late")


async def test_of_writers_of_one_version_one_wins_and_the_others_are_told(
    store: BlobStore, container: str
) -> None:
    async def write(number: int, etag: str | None) -> str | None:
        try:
            return await store.write_version(container, "a.json", b"%d" % number, etag=etag)
        except ConflictError:
            return None

    first = [etag for etag in await asyncio.gather(*(write(n, None) for n in range(4))) if etag]
    assert len(first) == 1
    assert (await store.read_version(container, "a.json", most_bytes=1))[1] == first[0]
    assert await store.read_version(container, "a.json", most_bytes=0) == (b"", first[0])
    second = [etag for etag in await asyncio.gather(*(write(n, first[0]) for n in range(4))) if etag]
    assert len(second) == 1
    assert second != first
    assert await write(9, first[0]) is None
    await store.delete(container, "a.json")
    assert await write(9, second[0]) is None
    with pytest.raises(NotFoundError):
        await store.read_version(container, "a.json")


async def test_every_write_gives_another_etag_without_quotes(store: BlobStore, container: str) -> None:
    etags = []
    for _ in range(2):
        await store.write(container, "a.txt", b"same")
        properties = await store.properties(container, "a.txt")
        assert properties is not None
        etags.append(properties.etag)
    assert etags[0] != etags[1]
    assert '"' not in "".join(etags)


async def test_a_download_streams_into_the_file_and_describes_what_it_read(
    store: BlobStore, container: str, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 40_000  # 10 MB, uploaded in three pieces
    await store.write(container, "large.bin", content, metadata={"project": "p1"})
    properties = await store.download(container, "large.bin", tmp_path / "large.bin")
    assert (tmp_path / "large.bin").read_bytes() == content
    assert (properties.size_bytes, properties.metadata) == (len(content), {"project": "p1"})


async def test_an_empty_blob_is_read_and_downloaded(store: BlobStore, container: str, tmp_path: Path) -> None:
    await store.write(container, "empty.txt", b"")
    assert await store.read(container, "empty.txt") == b""
    assert (await store.download(container, "empty.txt", tmp_path / "empty.txt")).size_bytes == 0
    assert (tmp_path / "empty.txt").read_bytes() == b""


async def test_what_is_not_there_is_not_found(store: BlobStore, container: str, tmp_path: Path) -> None:
    assert await store.properties(container, "none") is None
    with pytest.raises(NotFoundError) as missing:
        await store.read(container, "none")
    assert container not in str(missing.value)  # the message is shown to users
    with pytest.raises(NotFoundError):
        await store.download(container, "none", tmp_path / "none")
    assert not (tmp_path / "none").exists()


async def test_deleting_removes_and_deleting_again_is_no_error(store: BlobStore, container: str) -> None:
    await store.write(container, "a.txt", b"a")
    await store.delete(container, "a.txt")
    await store.delete(container, "a.txt")
    assert await store.properties(container, "a.txt") is None


async def test_a_prefix_takes_its_blobs_along_and_no_others(store: BlobStore, container: str) -> None:
    for name in ("doc1/1.png", "doc1/2.png", "doc10/1.png"):
        await store.write(container, name, b"x")
    await store.delete_prefix(container, "doc1/")
    assert await store.properties(container, "doc1/2.png") is None
    assert await store.properties(container, "doc10/1.png") is not None


@contract
async def test_a_wrong_account_key_names_the_setting_and_shows_nothing_of_it(
    azurite: Azurite, connect: Connect
) -> None:
    wrong = azurite.connection_string.replace("AccountKey=Eby8", "AccountKey=AAAA")
    with pytest.raises(AuthenticationError) as refused:
        await BlobStore(connect(DocumentsStorage=wrong).blobs).read("documents", "a.txt")
    assert "DocumentsStorage" in refused.value.hints[0]
    assert "AAAA" not in str(refused.value) + "".join(refused.value.hints)


@contract
async def test_storage_out_of_reach_names_the_setting(azurite: Azurite, connect: Connect) -> None:
    blob_port = f"http://127.0.0.1:{azurite.blob_port}"
    nowhere = azurite.connection_string.replace(blob_port, NOWHERE)
    with pytest.raises(DependencyError) as unreachable:
        await BlobStore(connect(DocumentsStorage=nowhere).blobs).read("documents", "a.txt")
    assert "DocumentsStorage" in unreachable.value.hints[0]
