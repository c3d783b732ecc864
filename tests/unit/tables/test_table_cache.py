"""Tests for the disk cache of table files, limited in size and age."""

from pathlib import Path

import pytest

from shared.platform.errors import NotFoundError
from shared.tables.models import CATALOG, DATABASE
from shared.tables.table_cache import TableCache
from shared.tables.table_files import put_tables
from tests.fakes.blob_store import InMemoryBlobStore


async def stored(folder: Path, *versions: str) -> InMemoryBlobStore:
    blobs = InMemoryBlobStore()
    (folder / CATALOG).write_text("{}")
    for version in versions:
        (folder / DATABASE).write_text(version * 10)
        await put_tables(blobs, f"{version}/", folder)
    return blobs


async def test_a_file_is_fetched_once(tmp_path: Path) -> None:
    cache, blobs = TableCache(), await stored(tmp_path, "a", "b")
    await cache.fetch(blobs, "a/", tmp_path / "first")
    empty = InMemoryBlobStore()
    await cache.fetch(empty, "a/", tmp_path / "second")
    assert (tmp_path / "second").read_text() == "a" * 10
    with pytest.raises(NotFoundError):
        await cache.fetch(empty, "b/", tmp_path / "third")


async def test_the_least_used_files_go_when_there_are_too_many(tmp_path: Path) -> None:
    cache, blobs = TableCache(max_bytes=20), await stored(tmp_path, "a", "b", "c")
    for number, version in enumerate("abac"):
        await cache.fetch(blobs, f"{version}/", tmp_path / f"{number}")
    await cache.fetch(InMemoryBlobStore(), "a/", tmp_path / "again")
    with pytest.raises(NotFoundError):
        await cache.fetch(InMemoryBlobStore(), "b/", tmp_path / "gone")


async def test_a_file_that_nobody_asks_for_is_deleted_but_stays_with_its_query(tmp_path: Path) -> None:
    now = 0.0
    cache, blobs = TableCache(kept_s=60, clock=lambda: now), await stored(tmp_path, "a")
    await cache.fetch(blobs, "a/", tmp_path / "mine")
    now = 61
    cache.sweep()
    with pytest.raises(NotFoundError):
        await cache.fetch(InMemoryBlobStore(), "a/", tmp_path / "again")
    assert (tmp_path / "mine").read_text() == "a" * 10
