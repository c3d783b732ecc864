"""An answer is on record with the documents that it shows, and served if it cannot be recorded."""

from datetime import timedelta

import pytest

from shared.access.audit_trail import AuditFilter, AuditTrail
from shared.access.models import AuditEntry
from shared.answering.inline import run_to_end
from shared.answering.runs import begin_run
from shared.platform.errors import DependencyError
from shared.platform.tables import Entity
from shared.runs.models import ChatRequest, RunRequest
from shared.wiring import Services
from tests.fakes.table import InMemoryTable
from tests.unit.answering.world import ANNA, world

pytestmark = pytest.mark.attack("audit trail")

QUESTION = "At what pressure does the pump run?"


async def answered(services: Services) -> RunRequest:
    request = await begin_run(ChatRequest(question=QUESTION), ANNA, services, origin="192.0.2.1")
    await run_to_end(request.run_id, services)
    record = await services.runs.get(request.run_id)
    assert record is not None
    assert record.status == "completed"
    return request


async def entries(trail: AuditTrail, request: RunRequest) -> tuple[AuditEntry, ...]:
    day = timedelta(days=1)
    return (await trail.page(AuditFilter(request.created_at - day, request.created_at + day), 10)).entries


async def test_an_answer_leaves_one_entry_with_the_documents_that_it_cites() -> None:
    services = await world()
    request = await answered(services)
    (entry,) = await entries(services.audit, request)
    assert (entry.user_id, entry.action, entry.run_id) == (ANNA.user_id, "answer", request.run_id)
    assert (entry.at, entry.origin) == (request.created_at, "192.0.2.1")
    assert entry.doc_ids


async def test_an_answer_is_served_while_the_trail_is_down(caplog: pytest.LogCaptureFixture) -> None:
    class Down(InMemoryTable):
        async def insert(self, entity: Entity) -> str:
            raise DependencyError("The table is down.")

    services = await world(audit=AuditTrail(Down()))
    await answered(services)
    assert sum('"audit.write_failed"' in record.getMessage() for record in caplog.records) == 1
