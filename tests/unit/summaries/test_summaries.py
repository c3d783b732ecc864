"""Summaries from the outside: whose they are, begun once, cancelled, deleted, purged."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.names import WORK
from shared.summaries.models import SummaryOrder, SummaryStep
from shared.summaries.steps import perform
from shared.summaries.summaries import (
    begin_summary,
    cancel_summary,
    close_dead_summary,
    delete_summary,
    owned_summary,
    purge_old_summaries,
    view_summary,
)
from tests.fakes.models import ScriptedChatModel
from tests.unit.summaries.summarising import begin, services_of, summarise
from tests.world import ANNA, BEN


async def test_a_cancelled_summary_reads_no_further_and_stays_cancelled() -> None:
    services = await services_of()
    request = await begin(services, "manual")
    await cancel_summary(request, services)
    await cancel_summary(request, services)
    view = await summarise(services, request)
    assert (view.status, view.error_type) == ("cancelled", "RunCancelledError")
    assert isinstance(services.chat_model, ScriptedChatModel)
    assert services.chat_model.prompts == []


async def test_an_ended_summary_cannot_be_cancelled_and_does_not_die() -> None:
    services = await services_of()
    request = await begin(services, "manual")
    await summarise(services, request)
    with pytest.raises(ConflictError):
        await cancel_summary(request, services)
    await close_dead_summary(request, services)
    assert (await view_summary(request, services, ANNA)).status == "completed"


async def test_a_summary_is_its_owners_alone() -> None:
    services = await services_of()
    request = await begin(services, "manual")
    with pytest.raises(NotFoundError) as foreign:
        await owned_summary(request.summary_id, BEN, services.blobs)
    with pytest.raises(NotFoundError) as absent:
        await owned_summary("0" * 32, BEN, services.blobs)
    assert str(foreign.value).replace(request.summary_id, "0" * 32) == str(absent.value)
    for strange in ("", "../x", "a/b", "x" * 65):
        with pytest.raises(NotFoundError):
            await owned_summary(strange, ANNA, services.blobs)


async def test_a_summary_that_is_begun_again_stays_as_it_was() -> None:
    services = await services_of()
    order = SummaryOrder(doc_ids=("manual", "manual"))
    first = await begin_summary(order, ANNA, services, "a" * 32)
    assert await begin_summary(order, ANNA, services, "a" * 32) == first
    assert (await begin_summary(order, ANNA, services)).summary_id != first.summary_id


async def test_deleting_and_purging_leave_nothing_behind() -> None:
    services = await services_of()
    ended: list[str] = []

    async def forget(instance_id: str) -> None:
        ended.append(instance_id)

    request = await begin(services, "manual", "report-2024")
    await summarise(services, request)
    await delete_summary(request, services.settings, services.blobs, services.user_limits, forget)
    assert ended[0] == request.summary_id
    assert set(ended[1:]) == {f"{request.summary_id}:d0", f"{request.summary_id}:d1"}
    step = SummaryStep(summary_id=request.summary_id, end=1)
    assert (await perform("read", step, services)).kind == "closed"
    assert (await perform("merge", step, services)).kind == "closed"
    kept = await begin(services, "manual")
    old = datetime.now(UTC) + timedelta(days=services.settings.conversations.run_retention_days, minutes=1)
    assert (
        await purge_old_summaries(
            datetime.now(UTC), services.settings, services.blobs, services.user_limits, forget
        )
        == 0
    )
    assert kept.summary_id in json.dumps(list(services.blobs.containers[WORK]))  # type: ignore[attr-defined]
    assert (
        await purge_old_summaries(old, services.settings, services.blobs, services.user_limits, forget) == 1
    )
    assert services.blobs.containers[WORK] == {}  # type: ignore[attr-defined]


async def test_what_a_step_wrote_after_the_deletion_goes_with_the_next_purge() -> None:
    services = await services_of()
    request = await begin(services, "manual")
    await services.blobs.write(WORK, f"summaries/{request.summary_id}/d00/w000.json", b"{}")
    await services.blobs.delete(WORK, f"summaries/{request.summary_id}/request.json")

    async def forget(instance_id: str) -> None:
        raise AssertionError("nothing is known of its orchestration")

    assert (
        await purge_old_summaries(
            datetime.now(UTC), services.settings, services.blobs, services.user_limits, forget
        )
        == 0
    )
    assert services.blobs.containers[WORK] == {}  # type: ignore[attr-defined]
