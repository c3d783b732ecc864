"""Tests for the details of documents whose passages a search returned."""

from shared.access.models import UserContext
from shared.answering.found_documents import FoundDocuments
from shared.platform.errors import CallTimeoutError
from shared.platform.search import SearchPage, SearchRequest
from shared.retrieval.block_reading import DocumentBlocks
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from tests.fakes.document_rows import FixedRows
from tests.fakes.recording_index import RecordingIndex

ANNA = UserContext(user_id="anna")
RECORDS = SearchPage(
    rows=tuple(
        {"doc_id": doc_id, "filename": filename, "upload_date": "2026-01-01T00:00:00Z"}
        for doc_id, filename in (("a", "note.pdf"), ("b", "report.pdf"), ("c", "report.pdf"))
    )
)
BLOCKS = SearchPage(
    rows=tuple(
        {"doc_id": doc_id, "block_id": block_id, "block_type": kind, "ordinal": 1}
        for doc_id, block_id, kind in (("a", "a1", "text"), ("a", "a2", "image"), ("b", "b1", "text"))
    )
)


class LateIndex(RecordingIndex):
    """An index whose searches time out."""

    async def search(self, request: SearchRequest) -> SearchPage:
        raise CallTimeoutError("The search timed out.")


def found_documents(records: RecordingIndex, blocks: RecordingIndex) -> FoundDocuments:
    rows = FixedRows()
    return FoundDocuments(
        DocumentSearch(SecuredIndex(records, ANNA, rows)), DocumentBlocks(SecuredIndex(blocks, ANNA, rows))
    )


async def test_records_unique_names_and_the_blocks_of_short_documents_are_known_afterwards() -> None:
    documents = found_documents(RecordingIndex(RECORDS), RecordingIndex(BLOCKS))
    await documents.describe({"a": "note.pdf", "b": "report.pdf"})
    assert {doc_id: record.filename for doc_id, record in documents.records.items()} == {
        "a": "note.pdf",
        "b": "report.pdf",
    }
    assert documents.unique_names == {"note.pdf"}
    assert documents.is_whole("a", {"a1", "a2", "b1"})
    assert not documents.is_whole("a", {"a1"})
    assert not documents.is_whole("unknown", {"a1"})


async def test_a_document_is_described_once() -> None:
    records = RecordingIndex(RECORDS)
    documents = found_documents(records, RecordingIndex(BLOCKS))
    await documents.describe({"a": "note.pdf", "b": "report.pdf"})
    await documents.describe({"b": "report.pdf"})
    assert len(records.requests) == 1


async def test_a_late_search_leaves_the_documents_undescribed() -> None:
    documents = found_documents(LateIndex(RECORDS), RecordingIndex(BLOCKS))
    await documents.describe({"a": "note.pdf"})
    assert (documents.records, documents.unique_names) == ({}, set())
    assert not documents.is_whole("a", {"a1", "a2"})
