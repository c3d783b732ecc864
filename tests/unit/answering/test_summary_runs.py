"""Tests for summaries as callers see them: ownership, idempotent start, cancellation, deletion and purge."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.answering.retention import purge_old_runs
from shared.answering.run_end import cancel_run
from shared.answering.runs import close_dead_run
from shared.answering.summary_models import OpenDocument
from shared.answering.summary_runs import begin_summary, view_summary
from shared.conversations.run_list import list_runs
from shared.erasure.threads import delete_run, erase_run
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.names import ERASURES_QUEUE, TURNS_QUEUE, WORK
from shared.runs.models import SummaryOrder
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.models import ScriptedChatModel
from tests.unit.answering.summarising import begin, on_document, services_of, summarise
from tests.world import ANNA, BEN


class Forgotten(list[str]):
    """A callback that records the forgotten orchestrations."""

    async def forget(self, instance_id: str) -> None:
        self.append(instance_id)


def stored(services: Services) -> list[str]:
    """Return the names of all stored blobs and journals."""
    blobs: Any = services.blobs
    log: Any = services.run_log
    return [*(name for container in blobs.containers.values() for name in container), *log.logs]


async def test_a_cancelled_summary_reads_no_further_and_stays_cancelled() -> None:
    services = await services_of()
    summary = await begin(services, "manual")
    await cancel_run(summary.run_id, services)
    await cancel_run(summary.run_id, services)
    view = await summarise(services, summary)
    assert (view.status, view.error_type) == ("cancelled", "RunCancelledError")
    assert isinstance(services.chat_model, ScriptedChatModel)
    assert services.chat_model.prompts == []


async def test_an_ended_summary_cannot_be_cancelled_and_does_not_die() -> None:
    services = await services_of()
    summary = await begin(services, "manual")
    await summarise(services, summary)
    with pytest.raises(ConflictError):
        await cancel_run(summary.run_id, services)
    await close_dead_run(summary.run_id, "It died.", services)
    assert (await view_summary(summary, services, ANNA)).status == "completed"


async def test_a_summary_is_its_owners_alone_and_no_question() -> None:
    services = await services_of()
    run_id = (await begin(services, "manual")).run_id
    with pytest.raises(NotFoundError) as foreign:
        await owned_run(run_id, BEN, services.runs, "document_summary")
    with pytest.raises(NotFoundError) as absent:
        await owned_run("0" * 37, BEN, services.runs, "document_summary")
    assert str(foreign.value).replace(run_id, "0" * 37) == str(absent.value)
    for strange in ("", "../x", "a/b", "x" * 65):
        with pytest.raises(NotFoundError):
            await owned_run(strange, ANNA, services.runs, "document_summary")
    assert (await owned_run(run_id, ANNA, services.runs, "document_summary")).run_id == run_id
    with pytest.raises(NotFoundError):
        await owned_run(run_id, ANNA, services.runs)
    assert (await list_runs(ANNA, services, 10)).runs == ()


async def test_a_summary_that_is_begun_again_stays_as_it_was() -> None:
    services = await services_of()
    order = SummaryOrder(doc_ids=("manual", "manual"))
    first = await begin_summary(order, ANNA, services, "a" * 32)
    assert await begin_summary(order, ANNA, services, "a" * 32) == first
    assert (await begin_summary(order, ANNA, services)).run_id != first.run_id


async def test_a_deleted_summary_leaves_nothing_behind() -> None:
    services = await services_of()
    before, forgotten = stored(services), Forgotten()
    summary = await begin(services, "manual", "report-2024")
    await summarise(services, summary)
    await delete_run(summary.run_id, services, forgotten.forget)
    assert forgotten[0] == summary.run_id
    assert set(forgotten[1:]) == {f"{summary.run_id}:s001c0", f"{summary.run_id}:s001c1"}
    assert stored(services) == before
    assert await services.runs.get(summary.run_id) is None


async def test_what_a_step_writes_after_the_deletion_is_deleted_when_no_step_is_active_any_more() -> None:
    services = await services_of()
    before, forgotten = stored(services), Forgotten()
    summary = await begin(services, "manual")
    await delete_run(summary.run_id, services, forgotten.forget)
    late = await on_document(services, summary, 0, OpenDocument())
    assert late.kind == "step_failed"
    await services.blobs.write(WORK, f"runs/{summary.run_id}/late.json", b"{}")
    (message,) = services.queues.take(ERASURES_QUEUE)  # type: ignore[attr-defined]
    assert summary.run_id in message
    await erase_run(summary.run_id, services, forgotten.forget, is_last=True)
    assert stored(services) == before


async def test_an_old_summary_is_purged_with_its_record() -> None:
    services = await services_of()
    before, forgotten = stored(services), Forgotten()
    summary = await begin(services, "manual")
    await summarise(services, summary)
    assert await purge_old_runs(datetime.now(UTC), services, forgotten.forget) == 0
    old = datetime.now(UTC) + timedelta(days=services.settings.conversations.run_retention_days, minutes=1)
    assert await purge_old_runs(old, services, forgotten.forget) == 1
    assert stored(services) == before
    assert await services.runs.get(summary.run_id) is None


async def test_a_summary_is_neither_remembered_nor_counted_among_the_answers() -> None:
    services = await services_of()
    await summarise(services, await begin(services, "manual"))
    assert services.quality.records == {}  # type: ignore[attr-defined]
    assert services.queues.take(TURNS_QUEUE) == []  # type: ignore[attr-defined]
