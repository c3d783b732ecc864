"""Tests for showing sub-agents during and after a run, and for removing their data."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from shared.answering.retention import purge_old_runs
from shared.answering.run_end import cancel_run
from shared.answering.runs import begin_run, view_run
from shared.answering.subagent_models import SubagentState
from shared.conversations.messages import read_messages
from shared.erasure.threads import erase_run
from shared.platform.blobs import BlobProperties
from shared.platform.errors import CallTimeoutError, NotFoundError
from shared.platform.names import RUN_LOG, WORK
from shared.platform.search import SearchPage, SearchRequest
from shared.runs.event_log import open_event_log
from shared.runs.fresh_urls import refresh_answer
from shared.runs.models import ChatRequest, RunAnswer, RunRequest, RunView, SubagentView
from shared.runs.run_files import answer_path
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.search_index import InMemorySearchIndex
from tests.fakes.services import fake_settings
from tests.unit.answering.pictures import add_pictures
from tests.unit.subagents.children import claim, state
from tests.unit.subagents.delegation_requests import STEP, comparison, decided, hit
from tests.unit.subagents.lines import keep_state
from tests.world import ANNA, BEN, corpus_services, remove_row


async def delegating(services: Services) -> RunRequest:
    """Start a run of Anna's with a comparator in progress on the manual and a report."""
    request = await begin_run(ChatRequest(question="What differs?"), ANNA, services)
    delegation_request = comparison("manual", "report-2023")
    delegation_request = type(delegation_request)(
        request, delegation_request.stored, delegation_request.evidence, step=STEP
    )
    outcome = await decided(delegation_request, services)
    assert outcome.delegation is not None
    await open_event_log(services.run_log, request.run_id, STEP, [outcome.event])
    return request


async def leaves(services: Services, run_id: str, left: SubagentState) -> None:
    await keep_state(services, run_id, STEP, left)


async def blobs_of(services: Services, run_id: str) -> dict[str, bytes]:
    """Return the blobs in the working memory of the run, keyed by their names within its folder."""
    folder = f"runs/{run_id}/"
    names = [blob.name async for blob in services.blobs.list_blobs(WORK, folder)]
    return {name.removeprefix(folder): await services.blobs.read(WORK, name) for name in names}


async def seen(services: Services, run_id: str) -> RunView:
    return await view_run(await owned_run(run_id, ANNA, services.runs), services, ANNA)


def doubting(*doc_ids: str) -> RunAnswer:
    view = SubagentView(
        child_id="r:s004c0",
        profile="comparator",
        badge="Comparator",
        status="done",
        doc_ids=doc_ids,
        claims=3,
        uncertainty=("The manual does not tell the pressure of 15 bar.",),
    )
    return RunAnswer(run_id="r", text="T", sub_agents=(view,))


async def completed(services: Services, answer: RunAnswer) -> RunRequest:
    request = await begin_run(ChatRequest(question="What differs?"), ANNA, services)
    answer = answer.model_copy(update={"run_id": request.run_id})
    await services.blobs.write(RUN_LOG, answer_path(request.run_id), answer.model_dump_json().encode())
    record = await owned_run(request.run_id, ANNA, services.runs)
    ended = {"status": "completed", "finished_at": datetime.now(UTC)}
    await services.runs.replace(record.model_copy(update=ended))
    return request


async def test_a_run_shows_its_sub_agents_while_they_work() -> None:
    services = await corpus_services(settings=fake_settings(whole_documents_tokens=0))
    request = await delegating(services)
    (view,) = (await seen(services, request.run_id)).sub_agents
    assert (view.badge, view.status, view.turns, view.claims) == ("Comparator", "running", 0, 0)
    findings = [claim("C", hit("manual", 1))]
    left = state([hit("manual", 1)], findings, status="running", turns_ended=1, started_at=datetime.now(UTC))
    await leaves(services, request.run_id, left)
    (at_work,) = (await seen(services, request.run_id)).sub_agents
    assert (at_work.status, at_work.turns, at_work.claims, at_work.proved) == ("running", 1, 1, 1)
    assert "A comparison of documents was asked for." in at_work.reasons
    assert at_work.started_at is not None


async def test_a_run_without_sub_agents_costs_no_look_for_any() -> None:
    class Unlisted(InMemoryBlobStore):
        def list_blobs(self, container: str, prefix: str = "") -> AsyncIterator[BlobProperties]:
            pytest.fail("there is nothing to look for")

    services = await corpus_services(settings=fake_settings(whole_documents_tokens=0), blobs=Unlisted())
    request = await begin_run(ChatRequest(question="At what pressure?"), ANNA, services)
    assert (await seen(services, request.run_id)).sub_agents == ()


async def test_of_a_run_that_was_cancelled_it_is_told_how_far_they_got() -> None:
    services = await corpus_services(settings=fake_settings(whole_documents_tokens=0))
    request = await delegating(services)
    await cancel_run(request.run_id, services)
    (view,) = (await seen(services, request.run_id)).sub_agents
    assert view.status == "failed"


async def test_they_are_shown_with_the_answer_and_in_the_thread() -> None:
    services = await corpus_services(settings=fake_settings(whole_documents_tokens=0))
    await add_pictures(services)
    request = await completed(services, doubting("manual"))
    view = await seen(services, request.run_id)
    assert view.answer is not None
    assert view.sub_agents == view.answer.sub_agents
    assert view.sub_agents[0].uncertainty
    (message,) = (await read_messages(request.thread_id, ANNA, services, 10)).messages
    assert message.answer is not None
    assert message.answer.sub_agents == view.sub_agents


async def test_nobody_else_sees_them() -> None:
    services = await corpus_services(settings=fake_settings(whole_documents_tokens=0))
    request = await delegating(services)
    with pytest.raises(NotFoundError):
        await owned_run(request.run_id, BEN, services.runs)


async def test_doubts_about_a_document_go_with_the_right_to_read_it() -> None:
    services = await corpus_services(settings=fake_settings(whole_documents_tokens=0))
    await add_pictures(services)
    readable = await refresh_answer(doubting("manual"), ANNA, services)
    assert readable.sub_agents[0].uncertainty
    revoked = await refresh_answer(doubting("manual"), BEN, services)
    assert (revoked.sub_agents[0].uncertainty, revoked.sub_agents[0].claims) == ((), 3)
    # If one of two documents is removed, both statements are hidden: either may concern the removed document.
    await remove_row(services, "report-2023")
    both = await refresh_answer(doubting("manual", "report-2023"), ANNA, services)
    assert both.sub_agents[0].uncertainty == ()


async def test_doubts_of_a_sub_agent_at_work_go_the_same_way() -> None:
    services = await corpus_services(settings=fake_settings(whole_documents_tokens=0))
    request = await delegating(services)
    await leaves(services, request.run_id, state([hit("manual", 1)], uncertainty=("About 15 bar.",)))
    for doc_id in ("manual", "report-2023"):
        await remove_row(services, doc_id)
    (hidden,) = (await seen(services, request.run_id)).sub_agents
    assert hidden.uncertainty == ()
    await add_pictures(services)
    await add_pictures(services, "report-2023", ("*",))
    (visible,) = (await seen(services, request.run_id)).sub_agents
    assert visible.uncertainty == ("About 15 bar.",)
    record = await owned_run(request.run_id, ANNA, services.runs)
    assert (await view_run(record, services)).sub_agents[0].uncertainty == ()


async def test_doubts_stay_hidden_while_nobody_can_say_who_may_read() -> None:
    class Away(InMemorySearchIndex):
        async def search(self, request: SearchRequest) -> SearchPage:
            raise CallTimeoutError("away")

    services = await corpus_services(settings=fake_settings(whole_documents_tokens=0))
    request = await completed(services, doubting("manual"))
    away = type(services)(**{**vars(services), "documents_index": Away("doc_id")})
    assert (await seen(away, request.run_id)).sub_agents[0].uncertainty == ()


async def test_erasing_a_run_ends_its_sub_agents_and_takes_all_of_theirs_away() -> None:
    services = await corpus_services(settings=fake_settings(whole_documents_tokens=0))
    request = await delegating(services)
    await leaves(services, request.run_id, state([hit("manual", 1)]))
    stopped: list[str] = []

    async def stop(instance_id: str) -> None:
        stopped.append(instance_id)

    await erase_run(request.run_id, services, stop, is_last=False)
    both = [request.run_id, f"{request.run_id}:s004c0"]
    assert stopped == both
    # Only the names of the sub-agents are kept, so that the last pass can find their histories.
    assert await blobs_of(services, request.run_id) == {"children.json": f'["{both[1]}"]'.encode()}
    await erase_run(request.run_id, services, stop, is_last=True)
    assert stopped == both * 2
    assert await blobs_of(services, request.run_id) == {}


async def test_an_old_run_is_forgotten_with_its_sub_agents() -> None:
    services = await corpus_services(settings=fake_settings(whole_documents_tokens=0))
    request = await delegating(services)
    await leaves(services, request.run_id, state([hit("manual", 1)]))
    await cancel_run(request.run_id, services)
    forgotten: list[str] = []

    async def forget(instance_id: str) -> None:
        forgotten.append(instance_id)

    later = datetime.now(UTC) + timedelta(days=services.settings.conversations.run_retention_days + 1)
    assert await purge_old_runs(later, services, forget) == 1
    assert set(forgotten) == {request.run_id, f"{request.run_id}:s004c0"}
    assert await blobs_of(services, request.run_id) == {}
    assert (await seen(services, request.run_id)).sub_agents == ()
