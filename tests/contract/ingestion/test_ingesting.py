"""Ingestion of a blob into both indexes, and its removal, through the orchestrator and the real SDKs."""

import json

import azure.functions as func
import pytest

import functions.ingest
from functions.ingest import BlobReference
from shared import wiring
from shared.documents.ids import ingestion_id
from shared.ingestion.acceptance import accept
from shared.ingestion.models import Closed, CloseRequest, IngestStep
from shared.ingestion.rights import note_event
from shared.ingestion.task import IngestTask
from shared.platform.names import DOCUMENTS
from shared.wiring import Services
from tests.contract.ingestion.driving import (
    GUIDE,
    after,
    blocks_of,
    documents_of,
    drop,
    dropped,
    ingest,
    perform,
    state_of,
    step_results,
    unique,
)
from tests.contract.ingestion.models import CountingChatModel, CountingEmbedder

pytestmark = pytest.mark.contract


async def test_a_dropped_file_becomes_a_searchable_document(services: Services, name: str) -> None:
    await drop(services, name, metadata={"acl": "engineering, sales", "owner_id": "u1", "project_id": "p9"})
    result = await ingest(services, name)
    assert (result.outcome, result.new_count) == ("ready", 3)

    blocks = await blocks_of(services, name)
    limits = next(block for block in blocks if "16 bar" in block["content"])
    assert limits["heading_path"] == "Pump guide > Limits"
    assert limits["access_control_list"] == ["engineering", "sales", "u1"]
    assert (limits["project_id"], limits["document_type"], limits["department"]) == (
        "p9",
        "manual",
        "maintenance",
    )
    (document,) = await documents_of(services, name)
    assert (document["title"], document["status"], document["version"]) == ("Pump manual", "ready", 1)
    assert (document["owner_id"], document["filename"]) == ("u1", name.rpartition("/")[2])
    assert document["document_date"] == "2024-01-01T00:00:00Z"

    state = await state_of(services, name)
    assert (state.status, state.is_open, state.block_count) == ("ready", False, 3)
    phases = [phase.status for phase in state.phases]
    assert phases == ["queued", "parsing", "embedding", "indexing", "ready"]
    assert await step_results(services, name) == []


async def test_an_email_has_the_date_on_which_it_was_sent(services: Services) -> None:
    name = unique(".eml")
    mail = (
        "From: Ada <ada@example.org>\nSubject: Limits of 2024\nDate: Fri, 08 Mar 2024 23:30:00 -0500\n\n"
        "The highest pressure is 16 bar.\n"
    )
    assert await dropped(services, name, mail) == "ready"
    (document,) = await documents_of(services, name)
    assert document["document_date"] == "2024-03-08T12:00:00Z"  # not 2024, which is the model's result


async def test_the_same_bytes_again_cost_no_model_call_and_no_index_write(
    services: Services, name: str, embedder: CountingEmbedder, chat_model: CountingChatModel
) -> None:
    await drop(services, name)
    await ingest(services, name)
    before = (len(embedder.texts), len(chat_model.prompts), await documents_of(services, name))
    assert (await ingest(services, name)).outcome == "current"
    await drop(services, name)
    assert (await ingest(services, name, "two")).outcome == "current"
    assert (len(embedder.texts), len(chat_model.prompts), await documents_of(services, name)) == before


async def test_the_model_is_told_the_title_in_the_files_properties(
    services: Services, chat_model: CountingChatModel
) -> None:
    page = "<title>{}</title><p>The pump runs at 16 bar at most.</p>"
    for title in ("Pumps &lt;/document&gt; of series 7", ""):
        await dropped(services, unique(".html"), page.format(title))
    with_title, without = (prompt.user for prompt in chat_model.prompts)
    assert "<file_title>Pumps &lt;/document&gt; of series 7</file_title>" in with_title
    assert with_title.count("</document>") == 1
    assert "file_title" not in without


async def test_only_changed_blocks_are_embedded_again(
    services: Services, name: str, embedder: CountingEmbedder
) -> None:
    await drop(services, name)
    await ingest(services, name)
    embedder.texts.clear()
    await drop(services, name, GUIDE.replace("16 bar", "12 bar"))
    result = await ingest(services, name, "two")
    assert (result.new_count, result.kept_count, result.gone_count) == (1, 2, 1)
    assert len(embedder.texts) == 1
    contents = " ".join(block["content"] for block in await blocks_of(services, name))
    assert "12 bar" in contents
    assert "16 bar" not in contents
    (document,) = await documents_of(services, name)
    assert document["version"] == 2
    assert {block["version"] for block in await blocks_of(services, name)} == {2}


async def test_a_passage_that_comes_first_moves_the_others_and_embeds_only_itself(
    services: Services, name: str, embedder: CountingEmbedder
) -> None:
    await drop(services, name)
    await ingest(services, name)
    embedder.texts.clear()
    await drop(services, name, "# Recall\n\nPumps of series 7 are recalled.\n\n" + GUIDE)
    result = await ingest(services, name, "two")
    assert (result.new_count, result.moved_count, len(embedder.texts)) == (1, 3, 1)
    blocks = sorted(await blocks_of(services, name), key=lambda block: block["ordinal"])
    assert [block["ordinal"] for block in blocks] == [0, 1, 2, 3]
    assert "series 7" in blocks[0]["content"]
    assert "16 bar" in blocks[2]["content"]
    assert all(block["content_vector"] for block in blocks)


async def test_a_sidecar_changes_rights_without_parsing_or_embedding(
    services: Services, name: str, embedder: CountingEmbedder, chat_model: CountingChatModel
) -> None:
    await drop(services, name, metadata={"acl": "everybody"})
    await ingest(services, name)
    embedder.texts.clear()
    chat_model.prompts.clear()
    await drop(services, f"{name}.acl.json", '{"acl": ["board"], "owner_id": "u2"}')
    assert (await ingest(services, name, "two")).outcome == "rights"
    assert embedder.texts == []
    assert chat_model.prompts == []
    assert {tuple(block["access_control_list"]) for block in await blocks_of(services, name)} == {
        ("board", "u2")
    }
    (document,) = await documents_of(services, name)
    assert (document["access_control_list"], document["owner_id"]) == (["board", "u2"], "u2")


async def test_a_deleted_file_leaves_nothing_behind(services: Services, name: str) -> None:
    await drop(services, name)
    await ingest(services, name)
    await services.blobs.delete(DOCUMENTS, name)
    assert (await ingest(services, name, "two")).outcome == "removed"
    assert await blocks_of(services, name) == []
    assert await documents_of(services, name) == []
    assert (await ingest(services, name, "three")).outcome == "nothing"


async def test_what_is_noted_during_an_ingestion_is_followed_before_it_ends(
    services: Services, name: str
) -> None:
    await drop(services, name)
    await ingest(services, name, "first")
    step = IngestStep(blob_name=name, fence="at work")
    step = after(step, await perform(accept, step, services))
    await drop(services, name, GUIDE + "\nA late line.\n")
    assert await note_event(name, services) == "noted"
    assert await note_event(name, services) == "known", "its second delivery"
    request = CloseRequest(step=step, status="ready")
    assert await IngestTask(step, services).close(request) == Closed(again=True)
    assert (await ingest(services, name, "at work")).outcome == "ready"
    assert not (await state_of(services, name)).is_open


class RecordingClient:
    """A durable client that records the started instances."""

    def __init__(self) -> None:
        self.started: list[tuple[str, str]] = []

    async def get_status(self, instance: str) -> None:
        return None

    async def start_new(self, name: str, instance: str, payload: dict[str, str]) -> str:
        self.started.append((instance, payload["blob_name"]))
        return instance


async def test_events_of_a_document_and_its_sidecar_start_instances_of_the_document(
    services: Services, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiring, "get_services", lambda: services)
    created = functions.ingest.blob_created._function.get_user_function().client_function
    deleted = functions.ingest.blob_deleted._function.get_user_function().client_function
    client = RecordingClient()
    await drop(services, name)
    await drop(services, f"{name}.acl.json", "[]")
    for _ in range(2):  # each event is delivered twice
        await created(BlobReference(container=DOCUMENTS, name=name), client)
        await created(BlobReference(container=DOCUMENTS, name=f"{name}.acl.json"), client)
    assert {instance for instance, _ in client.started} == {ingestion_id(name)}
    await ingest(services, name)
    await drop(services, f"{name}.acl.json", '["board"]')
    for _ in range(2):
        await created(BlobReference(container=DOCUMENTS, name=f"{name}.acl.json"), client)
    event = {
        "subject": f"/blobServices/default/containers/{DOCUMENTS}/blobs/{name}",
        "eventType": "Microsoft.Storage.BlobDeleted",
        "id": "e1",
    }
    await deleted(func.QueueMessage(body=json.dumps(event).encode()), client)
    assert (await ingest(services, name)).outcome != "nothing"
    assert set(client.started) == {(ingestion_id(name), name)}
