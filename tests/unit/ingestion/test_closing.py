"""What the end of an ingestion counts as: a try of the file's bytes, or none."""

import pytest

from shared.documents.ids import document_id
from shared.ingestion.claims import claim, close
from shared.ingestion.models import CloseRequest, IngestStep
from shared.ingestion.quarantine import MAX_TRIES, is_quarantined
from tests.fakes.services import fake_services


@pytest.mark.parametrize(("waited", "tries"), [(True, 0), (False, MAX_TRIES)])
async def test_bytes_whose_turn_never_came_are_not_quarantined_for_it(waited: bool, tries: int) -> None:
    store = fake_services().documents
    step = IngestStep(blob_name="scan.pdf", instance_id="one")
    request = CloseRequest(step=step, status="failed", reason="Other files are being read.", waited=waited)
    for _ in range(MAX_TRIES):
        assert await claim(store, step) is not None
        await close(store, request)
    state = await store.get(document_id(step.blob_name))
    assert state is not None
    assert (state.status, state.reason) == ("failed", request.reason)
    assert (state.failed_tries, is_quarantined(state)) == (tries, not waited)
