"""Tests for reconciliation and audit: every kind of inconsistency is detected and repaired."""

import json
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from functions import reconciliation as reconciliation_timer
from shared.documents.ids import document_id, ingestion_id
from shared.ingestion import reconciliation
from shared.ingestion.admission import Admissions
from shared.ingestion.audit import audit
from shared.ingestion.models import AuditReport, IngestStep
from shared.ingestion.task import IngestTask, now
from shared.platform.errors import DependencyError
from shared.platform.instances import Instances
from shared.platform.names import DOCUMENTS, WORK
from shared.platform.queues import PoisonMessage
from shared.platform.telemetry import LOGGER_NAME
from shared.wiring import Services
from tests.contract.ingestion.driving import ingest
from tests.fakes.search_index import InMemorySearchAdmin
from tests.fakes.stores import InMemoryPoisonQueues
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import IngestingClient, problem_of

NAME = "guide.md"
DOC_ID = document_id(NAME)
GUIDE = b"# Pumps\n\nThe pump runs at 15 bar."

Break = Callable[[Services], Awaitable[None]]


@pytest.fixture(autouse=True)
async def document(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ingest one document from the container, and let reconciliation treat new files as settled."""
    monkeypatch.setattr(reconciliation, "SETTLED", timedelta(0))
    await services.blobs.write(DOCUMENTS, NAME, GUIDE, metadata={"acl": "hr"})
    assert (await ingest(services, NAME)).outcome == "ready"


async def reconcile(durable: IngestingClient) -> tuple[dict[str, int], list[str]]:
    report = await reconciliation_timer.reconcile(durable)
    return report.started, await durable.run()


def kinds(report: AuditReport) -> list[str]:
    assert report.agrees == (report.difference_count == 0)
    return sorted({difference.kind for difference in report.differences})


async def change_state(services: Services, **fields: object) -> None:
    state = await services.documents.get(DOC_ID)
    assert state is not None
    await services.documents.replace(state.model_copy(update=fields))


async def drop_another(services: Services) -> None:
    await services.blobs.write(DOCUMENTS, "new.md", GUIDE)


async def replace_file(services: Services) -> None:
    await services.blobs.write(DOCUMENTS, NAME, GUIDE + b" Or less.", metadata={"acl": "hr"})


async def change_metadata(services: Services) -> None:
    await services.blobs.write(DOCUMENTS, NAME, GUIDE, metadata={"acl": "sales"})


async def delete_file(services: Services) -> None:
    await services.blobs.delete(DOCUMENTS, NAME)


async def write_sidecar(services: Services) -> None:
    await services.blobs.write(DOCUMENTS, f"{NAME}.acl.json", b'["board"]')


async def change_settings(services: Services) -> None:
    object.__setattr__(services, "settings", services.settings.changed(max_block_tokens=99))


async def lose_row(services: Services) -> None:
    await services.documents_index.delete([DOC_ID])


async def open_row(services: Services) -> None:
    await services.documents_index.merge([{"doc_id": DOC_ID, "access_control_list": ["*"]}])


async def die_at_work(services: Services) -> None:
    await IngestTask(IngestStep(blob_name=NAME, fence="dead"), services).acquire()


async def leave_wish(services: Services) -> None:
    await change_state(services, wish=100)


def block_ids(services: Services) -> list[str]:
    rows = services.content_index.rows  # type: ignore[attr-defined]
    return list(rows)


async def lose_block(services: Services) -> None:
    await services.content_index.delete(block_ids(services))


async def add_block(services: Services) -> None:
    await services.content_index.upload([{"block_id": f"{DOC_ID}-stray-0", "doc_id": DOC_ID}])


async def open_block(services: Services) -> None:
    (block_id,) = block_ids(services)
    await services.content_index.merge([{"block_id": block_id, "access_control_list": ["*"]}])


CASES: list[tuple[Break, str, str, str]] = [
    (drop_another, "not_ingested", "not_ingested", "ready"),
    (replace_file, "outdated", "outdated", "ready"),
    (change_metadata, "outdated", "outdated", "current"),
    (delete_file, "file_gone", "file_gone", "removed"),
    (write_sidecar, "rights_differ", "rights_differ", "rights"),
    (change_settings, "outdated", "outdated", "ready"),
    (lose_row, "row_missing", "row_missing", "ready"),
    (open_row, "row_differs", "row_differs", "ready"),
    (lose_block, "blocks_missing", "blocks_missing", "ready"),
    (add_block, "blocks_differ", "blocks_differ", "ready"),
    (open_block, "blocks_differ", "blocks_differ", "ready"),
    (leave_wish, "in_work", "stuck", "current"),
]


@pytest.mark.parametrize(
    ("break_it", "finding", "started", "outcome"), CASES, ids=[case[0].__name__ for case in CASES]
)
async def test_what_differs_is_found_and_made_good(
    services: Services, durable: IngestingClient, break_it: Break, finding: str, started: str, outcome: str
) -> None:
    await break_it(services)
    assert kinds(await audit(services)) == [finding]
    assert await reconcile(durable) == ({started: 1}, [outcome])
    assert kinds(await audit(services)) == []
    assert await reconcile(durable) == ({}, [])


async def test_a_document_whose_ingestion_died_is_left_to_the_watch(
    services: Services, durable: IngestingClient
) -> None:
    await die_at_work(services)
    assert kinds(await audit(services)) == ["in_work"]
    assert await reconcile(durable) == ({}, [])
    await Admissions(services, Instances(durable)).look()
    assert await durable.run() == ["current"]
    assert kinds(await audit(services)) == []


async def test_rights_of_blob_metadata_arrive_without_an_event(
    services: Services, durable: IngestingClient, user: AsUser
) -> None:
    await change_metadata(services)
    await reconcile(durable)
    assert (await user("carl", groups=["sales"]).get(f"/documents/{DOC_ID}")).status_code == 200
    assert (await user("carl", groups=["hr"]).get(f"/documents/{DOC_ID}")).status_code == 404


async def test_an_administrator_sees_what_nobody_may_read(services: Services, user: AsUser) -> None:
    await services.blobs.write(DOCUMENTS, "lost.md", GUIDE)
    await ingest(services, "lost.md")
    report = (await user("olga", roles=["admin"]).get("/maintenance/audit")).json()
    (lost,) = report["unreadable"]
    assert lost == {
        "doc_id": document_id("lost.md"),
        "filename": "lost.md",
        "status": "ready",
        "warning": "Nobody can read the document, because it has no access list and no owner.",
    }
    changed = await user("olga", roles=["admin"]).put(
        f"/documents/{lost['doc_id']}/access", json={"acl": ["hr"]}
    )
    assert changed.status_code == 200
    assert (await audit(services)).unreadable == ()


async def test_what_is_being_worked_on_is_left_alone(services: Services, durable: IngestingClient) -> None:
    await IngestTask(IngestStep(blob_name=NAME, fence="alive"), services).acquire()
    assert kinds(await audit(services)) == ["in_work"]
    await durable.start_new("ingest_document", ingestion_id(NAME), {"blob_name": NAME})
    report = await reconciliation_timer.reconcile(durable)
    assert (report.started, len(durable.started)) == ({}, 1)


async def test_a_run_starts_so_many_and_tells_how_many_are_left(
    services: Services, durable: IngestingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, "MAX_STARTS", 2)
    for number in range(5):
        await services.blobs.write(DOCUMENTS, f"new-{number}.md", GUIDE)
    report = await reconciliation_timer.reconcile(durable)
    assert (report.started, report.left) == ({"not_ingested": 2}, 3)


async def test_a_failed_file_is_tried_again_later_and_three_times_in_all(
    services: Services, durable: IngestingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await services.blobs.write(DOCUMENTS, "broken.md", b"\x00\x01" * 50)
    assert await reconcile(durable) == ({"not_ingested": 1}, ["failed"])
    assert await reconcile(durable) == ({}, [])
    monkeypatch.setattr(reconciliation, "RETRY_AFTER", timedelta(0))
    assert await reconcile(durable) == ({"failed": 1}, ["failed"])
    assert await reconcile(durable) == ({"failed": 1}, ["failed"])
    assert await reconcile(durable) == ({}, [])
    report = await audit(services)
    assert (report.agrees, report.counts.failed) == (True, 1)


async def test_rows_that_nothing_stands_behind_are_removed(
    services: Services, durable: IngestingClient
) -> None:
    await services.documents_index.upload(
        [{"doc_id": "ghost", "filename": "ghost.md", "upload_date": now().isoformat()}]
    )
    await services.content_index.upload([{"block_id": "ghost-1-0", "doc_id": "ghost"}])
    assert kinds(await audit(services)) == ["blocks_orphaned", "row_orphaned"]
    assert (await reconciliation_timer.reconcile(durable)).removed_orphans == 1
    assert kinds(await audit(services)) == []


async def test_what_lies_in_the_poison_queues_is_told_whatever_becomes_of_the_comparison(
    services: Services, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    message = PoisonMessage(queue="q", message_id="1", inserted_at=None, dequeue_count=5, blob_name="a.md")
    assert isinstance(services.poison, InMemoryPoisonQueues)
    services.poison.messages.append(message)

    async def broken(*_: object) -> None:
        raise DependencyError("The search service is not reached.", "Try again.")

    monkeypatch.setattr(reconciliation_timer, "reconcile", broken)
    with pytest.raises(DependencyError):
        await reconciliation_timer.reconcile_documents(None)
    assert json.loads(caplog.records[0].getMessage())["event"] == "poison.found"


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("{current}figures/p1.png", "figures_orphaned"),
        ("{current}steps/parsed.json", "work_left"),
        (f"versions/{DOC_ID}/other/manifest.json", "work_left"),
        ("versions/ghost/hash/reading.json", "work_left"),
    ],
)
async def test_files_that_belong_to_nothing_are_found(services: Services, place: str, kind: str) -> None:
    await services.blobs.write(WORK, place.format(current=await current_folder(services)), b"x")
    assert kinds(await audit(services)) == [kind]


async def current_folder(services: Services) -> str:
    state = await services.documents.get(DOC_ID)
    assert state is not None
    return state.folder


async def test_a_picture_that_a_block_shows_must_be_there(services: Services) -> None:
    (block_id,) = block_ids(services)
    await services.content_index.merge([{"block_id": block_id, "image_url": f"figures/{DOC_ID}/p1.png"}])
    assert kinds(await audit(services)) == ["figures_missing"]
    await services.blobs.write(WORK, f"{await current_folder(services)}figures/p1.png", b"x")
    assert kinds(await audit(services)) == []


async def test_an_index_that_was_lost_is_made_again_by_the_next_run(
    services: Services, durable: IngestingClient
) -> None:
    assert isinstance(services.search_admin, InMemorySearchAdmin)
    definitions = dict(services.search_admin.definitions)
    services.search_admin.definitions.clear()
    await reconcile(durable)
    assert services.search_admin.definitions == definitions
    assert len(definitions) == 3


async def test_only_administrators_may_ask(services: Services, user: AsUser) -> None:
    for client, status in ((user("anna"), 403), (user("anna", groups=["admin"]), 403)):
        assert problem_of(await client.get("/maintenance/audit"))[0] == status
        assert problem_of(await client.get("/maintenance/poison"))[0] == status
        assert problem_of(await client.post("/maintenance/reconcile"))[0] == status
    olga = user("olga", roles=["admin"])
    report = (await olga.get("/maintenance/audit")).json()
    assert (report["agrees"], report["counts"]["files"], report["counts"]["blocks"]) == (True, 1, 1)
    assert (await olga.post("/maintenance/reconcile")).json() == {
        "started": {},
        "removed_orphans": 0,
        "left": 0,
        "share": 1.0,
    }


async def test_failures_of_everybody_are_shown_by_name_and_owner(services: Services, user: AsUser) -> None:
    await change_state(services, status="failed", reason="It is encrypted.", updated_at=now())
    state = await services.documents.get(DOC_ID)
    assert state is not None
    owned = state.wanted_rights.model_copy(update={"owner_id": "anna", "published_by": "Anna Berg"})
    await change_state(services, wanted_rights=owned)
    assert (await user("olga", roles=["admin"]).get("/documents")).json()["documents"] == []
    listing = (await user("olga", roles=["admin"]).get("/maintenance/failed")).json()
    assert listing["count"] == 1
    (document,) = listing["documents"]
    assert (document["filename"], document["owner_name"], document["status_reason"]) == (
        NAME,
        "Anna Berg",
        "It is encrypted.",
    )
    assert (await user("anna").get("/maintenance/failed")).status_code == 403


async def test_events_that_were_given_up_are_shown(services: Services, user: AsUser) -> None:
    message = PoisonMessage(queue="q", message_id="1", inserted_at=None, dequeue_count=5, blob_name="a.md")
    assert isinstance(services.poison, InMemoryPoisonQueues)
    services.poison.messages.append(message)
    listing = (await user("olga", roles=["admin"]).get("/maintenance/poison")).json()
    assert (listing["count"], listing["messages"][0]["blob_name"]) == (1, "a.md")


async def test_the_log_tells_of_events_that_were_given_up_by_queue_alone(
    services: Services, user: AsUser, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    assert isinstance(services.poison, InMemoryPoisonQueues)
    await reconciliation_timer._warn_of_poison()
    assert caplog.records == []
    message = PoisonMessage(
        queue="q", message_id="1", inserted_at=None, dequeue_count=5, blob_name="secret.md"
    )
    services.poison.messages += [message, message.model_copy(update={"message_id": "2"})]
    await reconciliation_timer._warn_of_poison()
    log_entry = json.loads(caplog.records[0].getMessage())
    assert (log_entry["event"], log_entry["queues"]) == ("poison.found", {"q": 2})
    assert "secret.md" not in caplog.text
