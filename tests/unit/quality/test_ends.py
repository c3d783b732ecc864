"""Tests for records of finished runs: written once, after the last event, with numbers only."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.answering.inline import run_to_end
from shared.answering.run_end import cancel_run
from shared.answering.run_facts import note_end
from shared.answering.runs import begin_run, close_dead_run
from shared.answering.steps import StepFields, StepInput
from shared.platform.errors import DependencyError
from shared.platform.language_models.models import CallLimits
from shared.quality.measures import purge_old_quality, quality_metrics
from shared.quality.models import AnswerRecord, QualityRecord
from shared.quality.recording import key_of
from shared.runs.events import ValueLine
from shared.runs.journal import committed_answer, read_journal
from shared.runs.models import ChatRequest, RunRequest
from shared.wiring import Services
from tests.fakes.background import background_done
from tests.fakes.stores_quality import InMemoryQualityStore
from tests.scripts import next_action, observe, perform, start
from tests.unit.answering.pictures import picture
from tests.world import ANNA, Model, corpus_services, events_of, plan

QUESTION = "At what pressure does the pump run?"


async def start_run(services: Services, **more: Any) -> RunRequest:
    return await begin_run(ChatRequest(question=QUESTION, **more), ANNA, services)


def recorded(services: Services) -> list[AnswerRecord]:
    assert isinstance(services.quality, InMemoryQualityStore)
    return [record for record in services.quality.records.values() if record.kind == "answer"]


async def test_an_answer_is_recorded_with_its_numbers() -> None:
    services = await corpus_services()
    request = await start_run(services, project_id=None)
    await run_to_end(request.run_id, services)
    (record,) = recorded(services)
    assert (record.key, record.at, record.outcome) == (key_of(request.run_id), request.created_at, "answered")
    assert (record.citations, record.citations_verified) == (1, 1)
    assert (record.plan_items, record.plan_items_done, record.asked_back) == (2, 2, False)
    assert (record.tool_calls, record.tool_calls_succeeded) == (1, 1)
    assert record.latency_ms is not None
    assert record.first_token_ms is not None
    assert record.first_token_ms <= record.latency_ms


async def test_a_record_names_neither_the_run_nor_its_owner_and_holds_no_words() -> None:
    services = await corpus_services()
    request = await start_run(services)
    await run_to_end(request.run_id, services)
    (record,) = recorded(services)
    text = record.model_dump_json()
    for fragment in (request.run_id, request.thread_id, "anna", "pressure", "pump", "manual"):
        assert fragment not in text


@pytest.mark.parametrize(("tag", "shown_count"), [('<figure block_id="manual-figure-1"/>', 1), ("", 0)])
async def test_pictures_that_could_have_been_shown_are_counted(tag: str, shown_count: int) -> None:
    answer = 'It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
    services = await corpus_services(Model(plan(), answer=answer + tag))
    beside = picture(image_caption="Figure 1: The canteen in winter")
    (vector,) = await services.embedder.embed(["canteen"], CallLimits(timeout_s=1))
    row = beside.model_dump(exclude={"score", "content"}) | {"access_control_list": ["engineering"]}
    await services.content_index.upload([{**row, "image_caption_vector": list(vector)}])
    request = await start_run(services)
    await run_to_end(request.run_id, services)
    (record,) = recorded(services)
    assert (record.figures_available, record.figures_shown) == (1, shown_count)


async def test_the_project_of_the_question_is_kept() -> None:
    services = await corpus_services(Model(plan(), answer='<gap missing="it" next_step="ask"/>'))
    request = await start_run(services, project_id="pumps")
    await run_to_end(request.run_id, services)
    (record,) = recorded(services)
    assert (record.project_id, record.outcome) == ("pumps", "abstained")


async def test_a_run_that_fails_is_recorded_with_the_plan_that_it_had() -> None:
    services = await corpus_services(Model(plan()))
    request = await start_run(services)
    state = start()
    for _ in range(2):
        action = next_action(state)
        assert isinstance(action, StepFields)
        step_input = StepInput.model_validate({"run_id": request.run_id, "action": action.model_dump()})
        state = observe(state, await perform(step_input, services))
    for _ in range(2):  # two readers detect the dead run
        await close_dead_run(request.run_id, "It was stopped.", services)
    (record,) = recorded(services)
    assert (record.outcome, record.plan_items, record.plan_items_done) == ("failed", 2, 0)
    assert (record.tool_calls, record.citations) == (1, 0)


async def test_a_cancelled_run_is_recorded_as_such() -> None:
    services = await corpus_services()
    request = await start_run(services)
    for _ in range(2):
        await cancel_run(request.run_id, services)
    await background_done()
    assert [record.outcome for record in recorded(services)] == ["cancelled"]


async def test_it_is_recorded_after_the_last_event() -> None:
    class Late(InMemoryQualityStore):
        seen: str | None = None

        async def add(self, record: QualityRecord) -> bool:
            self.seen = events_of(services, request.run_id)[-1].name
            return await super().add(record)

    late = Late()
    services = await corpus_services(quality=late)
    request = await start_run(services)
    await run_to_end(request.run_id, services)
    assert late.seen == "COMPLETE"


class Broken(InMemoryQualityStore):
    """A table that is unreachable or never responds."""

    def __init__(self, *, hangs: bool) -> None:
        super().__init__()
        self._hangs = hangs

    async def add(self, record: QualityRecord) -> bool:
        if self._hangs:
            await asyncio.sleep(3600)
        raise DependencyError("the table is out of reach")


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_store_that_fails_costs_no_answer(monkeypatch: pytest.MonkeyPatch, *, hangs: bool) -> None:
    monkeypatch.setattr("shared.quality.recording.NOTE_LIMIT_S", 0.05)
    services = await corpus_services(quality=Broken(hangs=hangs))
    request = await start_run(services)
    await run_to_end(request.run_id, services)
    record = await services.runs.get(request.run_id)
    assert record is not None
    assert record.status == "completed"


async def test_a_journal_that_cannot_be_read_costs_no_end() -> None:
    services = await corpus_services()
    request = await start_run(services)
    await run_to_end(request.run_id, services)
    record = await services.runs.get(request.run_id)
    assert record is not None
    answer = await committed_answer(request.run_id, services.blobs, services.run_log)
    services = replace(services, quality=InMemoryQualityStore())
    journal = await read_journal(services.run_log, services.blobs, request.run_id)
    journal.events.append(ValueLine(of=2, part="facts", inline={"first_token_ms": "soon"}))
    await note_end(record, services, journal, answer)
    assert recorded(services) == []


async def test_old_records_go_and_young_ones_stay() -> None:
    services = await corpus_services()
    request = await start_run(services)
    await run_to_end(request.run_id, services)
    days = services.settings.conversations.run_retention_days
    assert (
        await purge_old_quality(
            request.created_at + timedelta(days=days - 1), services.settings, services.quality
        )
        == 0
    )
    assert (
        await purge_old_quality(
            request.created_at + timedelta(days=days + 1), services.settings, services.quality
        )
        == 1
    )
    metrics = await quality_metrics(services.quality, request.created_at + timedelta(hours=1), 2)
    assert metrics.answers.runs == 0
