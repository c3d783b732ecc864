"""Tests for the hourly timer that purges data after its retention period."""

import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.durable_functions import OrchestrationRuntimeStatus
from azure.durable_functions.models import PurgeHistoryResult

from functions import background
from shared.platform.errors import DependencyError
from shared.quality.models import AnswerRecord
from shared.runs.models import RunRecord
from shared.wiring import Services
from tests.fakes.stores import InMemoryRunStore
from tests.fakes.stores_quality import InMemoryQualityStore
from tests.fakes.stores_requests import InMemoryIdempotencyStore


class PurgingClient:
    """The part of a durable client that purges histories."""

    def __init__(self) -> None:
        self.purged: list[tuple[datetime, datetime, list[OrchestrationRuntimeStatus]]] = []

    async def purge_instance_history_by(
        self, since: datetime, before: datetime, statuses: list[OrchestrationRuntimeStatus]
    ) -> PurgeHistoryResult:
        self.purged.append((since, before, statuses))
        if len(self.purged) == 3:
            raise TimeoutError  # as the client does after 240 s
        return PurgeHistoryResult(instancesDeleted=3)


def ended(at: datetime) -> AnswerRecord:
    return AnswerRecord(key="run", at=at, outcome="answered")


def tidy(services: Services, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the timer's function, which takes the client of Durable Functions."""

    async def ready() -> Services:
        return services

    monkeypatch.setattr("shared.wiring.ready_services", ready)
    return background.keep_tidy


async def test_the_timer_takes_old_records_away(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    for days in (0, 31, 32):
        await services.quality.add(ended(now - timedelta(days=days)))
    client = PurgingClient()
    await tidy(services, monkeypatch)(client=client)
    slices = [(since, before) for since, before, _ in client.purged]
    cutoff = now - timedelta(days=services.settings.conversations.run_retention_days)
    assert timedelta() <= slices[0][1] - cutoff < timedelta(hours=1)
    assert slices[0][1] - slices[0][0] == timedelta(hours=1)
    assert [since for since, _ in slices[:-1]] == [before for _, before in slices[1:]]  # no gaps
    assert slices[-1][0].year == 2020
    assert len(slices) < 20
    statuses = client.purged[0][2]
    assert {status.value for status in statuses} == {"Completed", "Failed", "Terminated", "Canceled"}
    assert isinstance(services.quality, InMemoryQualityStore)
    (left,) = services.quality.records.values()
    assert left.at == now


class UnreadableRunStore(InMemoryRunStore):
    """A run store with one unreadable row."""

    async def ended_before(self, moment: datetime) -> AsyncIterator[RunRecord]:
        async for record in super().ended_before(moment):
            yield record
        raise ValueError("a secret of the row")


class UnreadableIdempotencyStore(InMemoryIdempotencyStore):
    """An idempotency store with one unreadable row."""

    async def delete_before(self, moment: datetime, most: int) -> int:
        raise ValueError("another secret")


async def test_a_purge_that_fails_stops_no_other(
    services: Services, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = datetime.now(UTC)
    await services.quality.add(ended(now - timedelta(days=31)))
    broken = replace(services, runs=UnreadableRunStore(), idempotency=UnreadableIdempotencyStore())
    client = PurgingClient()
    with pytest.raises(DependencyError) as failure:
        await tidy(broken, monkeypatch)(client=client)
    assert failure.value.detail == "Purges failed: runs, idempotency_keys."  # the invocation fails
    assert isinstance(services.quality, InMemoryQualityStore)
    assert services.quality.records == {}
    assert client.purged != []
    errors = [json.loads(line.getMessage()) for line in caplog.records if line.levelno >= logging.ERROR]
    assert [(error["event"], error["kind"]) for error in errors] == [
        ("retention.purge_failed", "runs"),
        ("retention.purge_failed", "idempotency_keys"),
    ]
    assert "secret" not in caplog.text
