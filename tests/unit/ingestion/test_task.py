"""Tests for the outcome of an ingestion, which may or may not count as an attempt at the file's content."""

import pytest

from shared.documents.ids import document_id
from shared.ingestion.models import CloseRequest, IngestStep
from shared.ingestion.task import MAX_TRIES, IngestTask, is_quarantined
from tests.fakes.services import fake_services


@pytest.mark.parametrize(("may_pass", "tries"), [(True, 0), (False, MAX_TRIES)])
async def test_bytes_are_not_quarantined_for_a_failure_that_may_pass(may_pass: bool, tries: int) -> None:
    services = fake_services()
    step = IngestStep(blob_name="scan.pdf", fence="one")
    request = CloseRequest(
        step=step, status="failed", reason="Other files are being read.", may_pass=may_pass
    )
    for _ in range(MAX_TRIES):
        claim = IngestTask(step, services)
        assert await claim.acquire() is not None
        await claim.close(request)
    state = await services.documents.get(document_id(step.blob_name))
    assert state is not None
    assert (state.status, state.reason) == ("failed", request.reason)
    assert (state.failed_tries, is_quarantined(state)) == (tries, not may_pass)
