"""Tests for the timer that restarts orchestrations which have recently failed."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from functions import background
from shared.wiring import Services
from tests.world import corpus_services


@dataclass
class FailingHost:
    """A durable client whose instances have failed. `failed` maps name and id to the time since the
    failure.
    """

    failed: dict[tuple[str, str], timedelta]
    looked_back: list[timedelta] = field(default_factory=list)
    restarted: list[str] = field(default_factory=list)

    async def get_status_by(self, since: datetime, runtime_status: list[Any]) -> list[Any]:
        assert [status.value for status in runtime_status] == ["Failed"]
        now = datetime.now(UTC)
        self.looked_back.append(now - since)
        return [
            SimpleNamespace(name=name, instance_id=instance_id, last_updated_time=now - ago)
            for (name, instance_id), ago in self.failed.items()
        ]

    async def get_status(self, instance_id: str) -> Any:
        return SimpleNamespace(runtime_status=SimpleNamespace(value="Failed"))

    async def restart(self, instance_id: str, restart_with_new_instance_id: bool) -> None:
        assert not restart_with_new_instance_id
        self.restarted.append(instance_id)


async def look(host: FailingHost, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ready() -> Services:
        return services

    monkeypatch.setattr("shared.wiring.ready_services", ready)
    await background.revive_instances(host)


async def test_work_that_took_an_hour_begins_again_when_it_failed_just_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services = await corpus_services()
    host = FailingHost(
        {
            ("reply_in_channel", "long"): timedelta(seconds=20),
            ("ingest_document", "watched"): timedelta(seconds=20),
            ("reply_in_channel", "yesterday"): timedelta(hours=20),
            ("run_sub_agent", "child"): timedelta(seconds=5),
        }
    )
    await look(host, services, monkeypatch)
    assert host.restarted == ["long"]
    wait = timedelta(seconds=services.settings.answering.clarification_timeout_s)
    assert host.looked_back[0] > wait + timedelta(hours=1)
