"""Tests for the index requests of the inventory, which runs over all documents every five minutes."""

import pytest

from shared.documents.ids import EVERYTHING, SIDECAR_SUFFIX
from shared.ingestion import inventory
from shared.ingestion.inventory import fitting_window, take_inventory
from shared.platform.names import DOCUMENTS
from shared.platform.search import SearchPage
from tests.fakes.recording_index import RecordingIndex
from tests.fakes.services import fake_services


async def test_only_what_is_compared_is_read_of_a_documents_row() -> None:
    index = RecordingIndex(SearchPage(rows=()))
    services = fake_services(documents_index=index)
    await take_inventory(services, EVERYTHING, EVERYTHING)
    (request,) = index.requests
    assert set(request.select) >= {"doc_id", "content_hash", "version", "access_control_list"}
    assert not {"words", "names", "summary_standard", "summary_brief"} & set(request.select)


async def test_of_too_many_files_another_part_is_looked_at_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inventory, "MOST_DOCUMENTS", 40)
    services = fake_services(documents_index=RecordingIndex(SearchPage(rows=())))
    names = {f"file {number}.md" for number in range(200)}
    for name in names:
        await services.blobs.write(DOCUMENTS, name, b"text")
        await services.blobs.write(DOCUMENTS, f"{name}{SIDECAR_SUFFIX}", b"{}")
    seen: list[set[str]] = []
    for count in range(5000, 5016):
        window = await fitting_window(services, count)
        files = (await take_inventory(services, window, window)).seen.values()
        assert all(one.sidecar_etag for one in files)
        seen.append({one.name for one in files})
    assert max(map(len, seen)) <= 40
    assert set().union(*seen) == names


async def test_of_too_many_rows_without_files_a_part_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "MOST_DOCUMENTS", 2)
    many = SearchPage(rows=tuple({"doc_id": f"{number:024x}"} for number in range(3)))
    index = RecordingIndex(many, many, SearchPage(rows=()))
    services = fake_services(documents_index=index)
    window = await fitting_window(services, count=0b01)
    assert window == EVERYTHING.narrow(0b01, 2)
    assert [request.filter for request in index.requests] == [
        "doc_id gt ''",
        "(doc_id gt '') and (doc_id ge '800000')",
        "(doc_id gt '') and ((doc_id ge '800000') and (doc_id lt 'c00000'))",
    ]


async def test_few_are_looked_at_together() -> None:
    services = fake_services(documents_index=RecordingIndex(SearchPage(rows=())))
    await services.blobs.write(DOCUMENTS, "a.md", b"text")
    assert await fitting_window(services, 77) == EVERYTHING
