"""Tests for the audit entry of an answer and its documents. A failed entry doesn't block the answer."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from shared.access.audit_trail import AuditFilter, AuditTrail
from shared.access.models import AuditEntry
from shared.answering.inline import run_to_end
from shared.answering.runs import Arrival, begin_run, close_dead_run
from shared.answering.script import RunEnd
from shared.answering.steps import StepFields, StepInput
from shared.platform.errors import DependencyError
from shared.platform.tables import Entity
from shared.runs.events import CitationEvent, RunEvent
from shared.runs.models import ChatRequest, RunRequest
from shared.runs.run_files import RunFiles
from shared.wiring import Services
from tests.fakes.run_log import InMemoryRunLog
from tests.fakes.table import InMemoryTable
from tests.scripts import next_action, observe, perform, start
from tests.world import ANNA, Model, corpus_services, plan

pytestmark = pytest.mark.attack("audit trail")

QUESTION = "At what pressure does the pump run?"


async def answered(services: Services) -> RunRequest:
    request = await begin_run(ChatRequest(question=QUESTION), ANNA, services, Arrival(origin="192.0.2.1"))
    await run_to_end(request.run_id, services)
    record = await services.runs.get(request.run_id)
    assert record is not None
    assert record.status == "completed"
    return request


async def entries(trail: AuditTrail, request: RunRequest) -> tuple[AuditEntry, ...]:
    day = timedelta(days=1)
    return (await trail.page(AuditFilter(request.created_at - day, request.created_at + day), 10)).entries


async def test_an_answer_leaves_one_entry_with_the_documents_that_it_cites() -> None:
    services = await corpus_services()
    request = await answered(services)
    (entry,) = await entries(services.audit, request)
    assert (entry.user_id, entry.action, entry.run_id) == (ANNA.user_id, "answer", request.run_id)
    assert (entry.at, entry.origin) == (request.created_at, "192.0.2.1")
    assert entry.doc_ids


TWO_DOCUMENTS = (
    'It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/> '
    'Revenue was 53 million euros. <cite doc_id="report-2024" quote="Revenue was 53 million euros."/>'
)


async def test_each_cited_document_is_recorded_before_readers_see_its_citation() -> None:
    recorded: list[frozenset[str]] = []

    class Watched(InMemoryRunLog):
        async def append(
            self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None
        ) -> int:
            cited = {event.doc_id for event in events if isinstance(event, CitationEvent)}
            if cited:
                audit_entries = await entries(
                    services.audit, await RunFiles(services.blobs, run_id).request()
                )
                recorded.append(
                    frozenset(cited - {doc_id for one in audit_entries for doc_id in one.doc_ids})
                )
            return await super().append(run_id, events, at_offset=at_offset)

    services = await corpus_services(Model(plan(), answer=TWO_DOCUMENTS), run_log=Watched())
    request = await answered(services)
    assert recorded
    assert not frozenset().union(*recorded), "cited before it was recorded"
    audit_entries = await entries(services.audit, request)
    assert sorted(doc_id for one in audit_entries for doc_id in one.doc_ids) == ["manual", "report-2024"]
    assert {one.run_id for one in audit_entries} == {request.run_id}


async def test_repeated_steps_add_no_entry() -> None:
    services = await corpus_services()
    request = await begin_run(ChatRequest(question=QUESTION), ANNA, services)
    state = start()
    while not isinstance(action := next_action(state), RunEnd):
        assert isinstance(action, StepFields)
        step_input = StepInput.model_validate({"run_id": request.run_id, "action": action.model_dump()})
        await perform(step_input, services)
        state = observe(state, await perform(step_input, services))
    assert [one.action for one in await entries(services.audit, request)] == ["answer"]


async def test_answer_that_cites_nothing_is_recorded_too() -> None:
    services = await corpus_services(Model(plan(query_type="CONVERSATION", reply="Hello.", todo=())))
    request = await answered(services)
    assert [(one.action, one.doc_ids) for one in await entries(services.audit, request)] == [("answer", ())]


async def test_failed_run_is_recorded() -> None:
    services = await corpus_services()
    request = await begin_run(ChatRequest(question=QUESTION), ANNA, services)
    for _ in range(2):
        await close_dead_run(request.run_id, "The worker died.", services)
    assert [(one.action, one.doc_ids) for one in await entries(services.audit, request)] == [("fail", ())]


async def test_an_answer_is_served_while_the_trail_is_down(caplog: pytest.LogCaptureFixture) -> None:
    class Down(InMemoryTable):
        async def insert(self, entity: Entity) -> str:
            raise DependencyError("The table is down.")

    services = await corpus_services(audit=AuditTrail(Down()))
    await answered(services)
    assert sum('"audit.write_failed"' in record.getMessage() for record in caplog.records) == 1
