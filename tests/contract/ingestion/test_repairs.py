"""Changes made outside the ingestion are repaired, and failures leave nothing behind."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from shared.access.models import UserContext
from shared.documents.ids import EVERYTHING, document_id, document_of_blob
from shared.documents.requests import UploadRequest
from shared.ingestion import reconciliation
from shared.ingestion.audit import audit
from shared.ingestion.changes import try_again
from shared.ingestion.inventory import WINDOW_BITS
from shared.ingestion.reconciliation import reconcile
from shared.ingestion.uploads import make_ticket, uploads_of
from shared.platform.errors import ConfigurationError, DependencyError, ModelFixableError
from shared.platform.names import DOCUMENTS
from shared.platform.search import IndexRow
from shared.wiring import Services
from tests.contract.ingestion import driving
from tests.contract.ingestion.driving import (
    GUIDE,
    blocks_of,
    documents_of,
    ingest,
    ingest_all,
    state_of,
    step_results,
    unique,
    version_files,
)
from tests.contract.ingestion.models import CountingChatModel, CountingEmbedder
from tests.contract.ingestion.test_figures import report
from tests.fakes.replaced import Replaced
from tests.servers import Azurite, own_azurite

pytestmark = [pytest.mark.contract, pytest.mark.e2e]  # runs long, so it is part of `make e2e`
NOBODY = "0" * 24


@pytest.fixture(scope="module")
def azurite() -> Iterator[Azurite]:
    """Yield a separate emulator, because reconciliation would also repair documents of other tests."""
    with own_azurite() as server:
        yield server


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciliation, "SETTLED", timedelta(0))


async def dropped(services: Services, name: str, content: str | bytes = GUIDE) -> str:
    return await driving.dropped(services, name, content, {"acl": "board", "owner_id": "anna"})


async def reconciled(services: Services, name: str, count: int = 0, block_bits: int = 0) -> list[str]:
    """Return the outcome of each ingestion of the document that a reconciliation started."""
    outcomes: list[str] = []

    async def run(blob_name: str) -> None:
        if blob_name == name:  # the storage is shared with other tests
            outcomes.append((await ingest(services, blob_name, unique(""))).outcome)

    async def start() -> None:
        await ingest_all(services, run)

    await reconcile(services, start, count, block_bits)
    return outcomes


async def differences(services: Services, name: str) -> list[str]:
    places = (name, document_id(name), NOBODY)
    return [one.kind for one in (await audit(services)).differences if one.place in places]


def plain(rows: Sequence[IndexRow]) -> list[IndexRow]:
    return [{field: row[field] for field in row if field != "@search.score"} for row in rows]


async def test_blocks_that_are_missing_too_many_or_of_nobody_are_mended(
    services: Services, name: str, embedder: CountingEmbedder, chat_model: CountingChatModel
) -> None:
    await dropped(services, name)
    before = plain(await blocks_of(services, name))
    lost, widened_id = before[0]["block_id"], before[1]["block_id"]
    doc_id = document_id(name)
    await services.content_index.delete([lost])
    stray = {"block_id": f"{doc_id}-stray-0", "doc_id": doc_id, "content": "Of nobody knows whom."}
    orphan = {"block_id": f"{NOBODY}-orphan-0", "doc_id": NOBODY, "content": "Of no document."}
    wider = {"block_id": widened_id, "access_control_list": ["*"]}
    await services.content_index.upload([stray, orphan])
    await services.content_index.merge([wider])
    assert await differences(services, name) == ["blocks_differ", "blocks_orphaned"]
    embedder.texts.clear()
    chat_model.prompts.clear()
    assert await reconciled(services, name) == ["ready"]
    assert await differences(services, name) == []
    assert plain(await blocks_of(services, name)) == before
    assert (len(embedder.texts), chat_model.prompts) == (1, [])
    assert await reconciled(services, name) == [], "what was mended is not mended again"


async def remove_one(services: Services, name: str) -> None:
    await services.content_index.delete([(await blocks_of(services, name))[0]["block_id"]])


async def test_a_run_of_the_timer_looks_at_its_part_of_the_blocks_only(services: Services, name: str) -> None:
    await dropped(services, name)
    await remove_one(services, name)
    windows = [EVERYTHING.narrow(count, WINDOW_BITS) for count in range(1000, 1256)]
    (due,) = [place for place, window in enumerate(windows) if window.holds(document_id(name))]
    assert await reconciled(services, name, 1000 + due + 1, WINDOW_BITS) == []
    assert await reconciled(services, name, 1000 + due, WINDOW_BITS) == ["ready"]


async def test_a_person_who_asks_for_another_try_gets_a_new_description(
    services: Services, name: str, chat_model: CountingChatModel
) -> None:
    await dropped(services, name)
    chat_model.prompts.clear()
    await try_again(await state_of(services, name), services)
    assert (await ingest(services, name, "again")).outcome == "ready"
    assert len(chat_model.prompts) == 1


async def test_blocks_of_a_failed_versions_predecessor_are_closed_to_others(
    services: Services, name: str, embedder: CountingEmbedder
) -> None:
    await dropped(services, name)
    embedder.failures = [ConfigurationError("No such model.")] * 3
    for _ in range(3):
        assert await dropped(services, name, b"Other bytes.") == "failed"
    (first, *_) = await blocks_of(services, name)
    await services.content_index.merge([{"block_id": first["block_id"], "access_control_list": ["*"]}])
    assert await differences(services, name) == ["blocks_differ"]
    assert await reconciled(services, name) == [], "it is mended at once"
    assert {tuple(row["access_control_list"]) for row in await blocks_of(services, name)} == {
        ("anna", "board")
    }
    assert await differences(services, name) == []
    assert (await state_of(services, name)).status == "failed"


async def test_blocks_that_a_failed_first_version_left_are_removed(services: Services, name: str) -> None:
    assert await dropped(services, name, b"\x00\x01" * 100) == "failed"
    stray = {
        "block_id": f"{document_id(name)}-stray-0",
        "doc_id": document_id(name),
        "content": "Half of it.",
    }
    await services.content_index.upload([stray])
    assert await reconciled(services, name) == ["failed"]
    assert await blocks_of(services, name) == []
    assert await differences(services, name) == []


async def test_an_upload_address_that_nobody_used_expires(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = UserContext(user_id="tilda")
    ticket = await make_ticket(UploadRequest(filename=f"{unique('')}.md".replace("/", "-")), user, services)
    sidecars = services.blobs.list_blobs(DOCUMENTS, uploads_of("tilda"))
    (sidecar,) = [blob.name async for blob in sidecars]
    name = document_of_blob(sidecar)
    await reconciled(services, name)
    assert await services.blobs.properties(DOCUMENTS, sidecar) is not None
    monkeypatch.setattr(reconciliation, "UPLOAD_EXPIRY", timedelta(days=-1))
    await reconciled(services, name)
    assert await services.blobs.properties(DOCUMENTS, sidecar) is None
    # A file uploaded with this ticket nevertheless creates no document.
    response = await asyncio.to_thread(httpx.put, ticket.url, content=GUIDE.encode(), headers=ticket.headers)
    assert response.status_code == 201
    assert (await ingest(services, name)).outcome == "removed"
    assert await services.blobs.properties(DOCUMENTS, name) is None
    assert await services.documents.get(ticket.doc_id) is None


async def test_warnings_stay_when_the_same_bytes_come_again_and_go_with_them(
    services: Services, name: str, chat_model: CountingChatModel
) -> None:
    chat_model.failures = [ModelFixableError("bad"), ModelFixableError("bad again")]
    await dropped(services, name)
    warnings = (await state_of(services, name)).warnings
    assert "come from simple rules" in " ".join(warnings)
    for _ in range(2):
        assert await dropped(services, name) == "current"
        state = await state_of(services, name)
        assert (state.status, state.warnings) == ("ready", warnings)
    assert await dropped(services, name, b"Other bytes.") == "ready"
    assert (await state_of(services, name)).warnings == ()


async def test_warnings_of_the_version_that_stays_outlive_one_that_fails(
    services: Services, name: str, chat_model: CountingChatModel, embedder: CountingEmbedder
) -> None:
    chat_model.failures = [ModelFixableError("bad"), ModelFixableError("bad again")]
    await dropped(services, name)
    warnings = (await state_of(services, name)).warnings
    assert "come from simple rules" in " ".join(warnings)
    embedder.failures = [ConfigurationError("No such model.")]
    assert await dropped(services, name, b"Other bytes.") == "failed"
    assert (await state_of(services, name)).warnings == warnings
    assert await dropped(services, name) == "current"
    assert (await state_of(services, name)).warnings == warnings


async def test_the_warning_of_bad_rights_stays_when_the_same_bytes_come_again(
    services: Services, name: str
) -> None:
    await services.blobs.ensure_containers([DOCUMENTS])
    await services.blobs.write(DOCUMENTS, f"{name}.acl.json", b"everybody!")
    await dropped(services, name)
    await dropped(services, name)
    assert "not valid JSON" in " ".join((await state_of(services, name)).warnings)
    await dropped(services, name, b"Other bytes.")
    assert "not valid JSON" in " ".join((await state_of(services, name)).warnings)


async def test_a_failed_ingestion_leaves_no_pictures_and_no_text_in_the_work_container(
    services: Services, tmp_path: Path, embedder: CountingEmbedder
) -> None:
    name = unique(".pdf")
    embedder.failures = [DependencyError("Down.")] * 40
    assert await dropped(services, name, report(tmp_path, 4)) == "failed"
    assert await version_files(services, name) == []
    assert "work_left" not in await differences(services, name)
    embedder.failures = []
    assert (await ingest(services, name, "again")).outcome == "ready"
    assert await step_results(services, name) == []


@pytest.mark.parametrize("has_old_version", [True, False])
async def test_of_a_version_that_did_not_become_whole_nothing_is_found(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_old_version: bool
) -> None:
    monkeypatch.setattr("shared.ingestion.indexing.EMBED_BATCH", 1)
    name = unique(".pdf")
    before: list[IndexRow] = []
    if has_old_version:
        assert await dropped(services, name, report(tmp_path, 4)) == "ready"
        before = plain(await blocks_of(services, name))
    content = report(tmp_path, 4, 5, 6)
    batches = iter(range(1))  # the new version needs more than one batch

    async def upload(rows: Sequence[IndexRow]) -> None:
        if next(batches, None) is None:
            raise DependencyError("Down.")
        await services.content_index.upload(rows)

    index: Any = Replaced(services.content_index, upload=upload)
    failing = replace(services, content_index=index)
    assert await dropped(failing, name, content) == "failed"
    assert plain(await blocks_of(services, name)) == before
    assert len(await documents_of(services, name)) == int(has_old_version)
    stored = await version_files(services, name, "figures/")
    assert len(stored) == len([row for row in before if row.get("image_url")])
    assert await differences(services, name) == []
    assert (await ingest(services, name, "again")).outcome == "ready"
    assert await differences(services, name) == []
