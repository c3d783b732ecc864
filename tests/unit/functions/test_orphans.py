"""Rows of no document: how the reconciliation removes them when the search service fails or is slow."""

import json
import logging
from collections.abc import Sequence

import pytest

from functions import maintenance
from shared.ingestion import reconciliation
from shared.platform.errors import DependencyError
from shared.platform.telemetry import LOGGER_NAME
from shared.wiring import Services
from tests.unit.functions.http_app import IngestingClient

GHOSTS = [f"ghost-{number}" for number in range(3)]


async def leave_blocks_of_ghosts(services: Services) -> None:
    rows = [{"block_id": f"{ghost}-1-0", "doc_id": ghost} for ghost in GHOSTS]
    await services.content_index.upload(rows)


async def test_a_row_that_cannot_be_removed_stops_no_other_and_is_told(
    services: Services,
    durable: IngestingClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    await leave_blocks_of_ghosts(services)
    delete = services.content_index.delete

    async def refusing(keys: Sequence[str]) -> None:
        if f"{GHOSTS[0]}-1-0" in keys:
            raise DependencyError("The search service is not reached.", "Try again.")
        await delete(keys)

    monkeypatch.setattr(services.content_index, "delete", refusing)
    report = await maintenance._reconcile(durable)
    assert (report.removed_orphans, report.left) == (2, 1)
    told = [json.loads(record.getMessage())["event"] for record in caplog.records]
    assert {"documents.not_reconciled", "documents.reconciled"} <= set(told)


async def test_removals_are_begun_for_a_while_only_and_the_rest_is_counted(
    services: Services, durable: IngestingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, "REMOVALS_S", 0.0)
    await leave_blocks_of_ghosts(services)
    report = await maintenance._reconcile(durable)
    assert (report.removed_orphans, report.left) == (0, len(GHOSTS))


async def test_rows_of_a_file_that_is_sent_again_meanwhile_stay(
    services: Services, durable: IngestingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, fresh = {"block_id": "ghost-1-0", "doc_id": "ghost"}, {"block_id": "ghost-2-0", "doc_id": "ghost"}
    await services.content_index.upload([old])
    delete = services.content_index.delete

    async def shown_a_while_longer(keys: Sequence[str]) -> None:
        await delete([key for key in keys if key != old["block_id"]])
        await services.content_index.upload([fresh])

    monkeypatch.setattr(services.content_index, "delete", shown_a_while_longer)
    await maintenance._reconcile(durable)
    assert fresh["block_id"] in services.content_index.rows  # type: ignore[attr-defined]
