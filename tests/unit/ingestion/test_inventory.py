"""What a look at all documents asks of the index: it happens every five minutes, for each of them."""

from shared.ingestion.inventory import take_inventory
from shared.models.search import SearchPage
from tests.fakes.recording_index import RecordingIndex
from tests.fakes.services import fake_services


async def test_only_what_is_compared_is_read_of_a_documents_row() -> None:
    index = RecordingIndex(SearchPage(rows=()))
    await take_inventory(fake_services(documents_index=index))
    (asked,) = index.requests
    assert set(asked.select) >= {"doc_id", "content_hash", "version", "access_control_list"}
    assert not {"words", "names", "summary_standard", "summary_brief"} & set(asked.select)
