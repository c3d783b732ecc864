"""Tests that removing a document's rows ends even if the index keeps returning deleted rows."""

import pytest

from shared.documents import index_rows
from shared.documents.index_rows import remove_blocks
from shared.platform.errors import DependencyError
from shared.platform.search import SearchPage, SearchRequest
from tests.fakes.recording_index import RecordingIndex

ROW = {"block_id": "doc-1", "doc_id": "doc"}


class Slow(RecordingIndex):
    """An index whose remaining pages still show rows after their deletion."""

    async def delete(self, keys: object) -> None:
        return


async def test_rows_that_are_shown_a_while_longer_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_rows, "_REMOVAL_PAUSES_S", (0.0,) * 6)
    index = Slow(*[SearchPage(rows=(ROW,))] * 3, SearchPage(rows=()))
    await remove_blocks(index, "doc")
    assert len(index.requests) == 4


async def test_rows_that_never_go_are_a_failure_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_rows, "_REMOVAL_PAUSES_S", (0.0,) * 6)
    index = Slow(SearchPage(rows=(ROW,)))
    with pytest.raises(DependencyError, match="still returns"):
        await remove_blocks(index, "doc")
    assert len(index.requests) == 7


async def test_what_is_removed_was_listed_just_before_and_not_before_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index_rows, "_REMOVAL_PAUSES_S", (0.0,))
    done: list[str] = []

    class Told(Slow):
        async def search(self, request: SearchRequest) -> SearchPage:
            done.append("listed")
            return await super().search(request)

        async def delete(self, keys: object) -> None:
            done.append("deleted")

    async def pause(_: float) -> None:
        done.append("paused")

    monkeypatch.setattr("shared.documents.index_rows.asyncio.sleep", pause)
    with pytest.raises(DependencyError):
        await remove_blocks(Told(SearchPage(rows=(ROW,))), "doc")
    assert done == ["paused", "listed", "deleted"] * 2
