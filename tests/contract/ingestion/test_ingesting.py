"""From a blob to both indexes and away again, through the orchestrator and the real SDKs."""

import itertools
import json

import azure.functions as func
import pytest

import functions.ingest
from functions.ingest import BlobReference
from shared import wiring
from shared.ingestion.changes import correct
from shared.ingestion.claims import Claim
from shared.ingestion.models import IngestStep
from shared.platform.names import DOCUMENTS, WORK
from shared.wiring import Services
from tests.contract.ingestion.driving import blocks_of, documents_of, ingest, state_of
from tests.contract.ingestion.models import CountingChatModel, CountingEmbedder

pytestmark = pytest.mark.contract
_numbers = itertools.count()

GUIDE = """# Pump guide

The pump moves water. It is checked every year by a trained person.

## Limits

The highest pressure is 16 bar. Above it the valve opens by itself.

## Care

Oil is changed every 500 hours. Use only oil of the type that the label names.
"""


@pytest.fixture
def name() -> str:
    return f"guides/guide-{next(_numbers)}.md"


async def drop(
    services: Services, name: str, content: str | bytes = GUIDE, metadata: dict[str, str] | None = None
) -> None:
    await services.blobs.ensure_containers([DOCUMENTS])
    raw = content.encode() if isinstance(content, str) else content
    await services.blobs.write(DOCUMENTS, name, raw, metadata=metadata)


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

    state = await state_of(services, name)
    assert (state.status, state.holder, state.block_count) == ("ready", None, 3)
    phases = [phase.status for phase in state.phases]
    assert phases == ["queued", "parsing", "embedding", "indexing", "ready"]
    assert (
        await services.blobs.properties(WORK, f"ingest/{state.doc_id}/{state.content_hash}/parsed.json")
        is None
    )


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


async def test_a_sidecar_that_is_not_json_closes_the_document_to_all_but_its_owner(
    services: Services, name: str
) -> None:
    await drop(services, name, metadata={"acl": "everybody", "owner_id": "u1"})
    await drop(services, f"{name}.acl.json", "everybody!")
    await ingest(services, name)
    assert {tuple(block["access_control_list"]) for block in await blocks_of(services, name)} == {("u1",)}
    assert "The sidecar is not JSON" in " ".join((await state_of(services, name)).warnings)


async def test_a_deleted_file_leaves_nothing_behind(services: Services, name: str) -> None:
    await drop(services, name)
    await ingest(services, name)
    await services.blobs.delete(DOCUMENTS, name)
    assert (await ingest(services, name, "two")).outcome == "removed"
    assert await blocks_of(services, name) == []
    assert await documents_of(services, name) == []
    assert (await ingest(services, name, "three")).outcome == "nothing"


async def test_a_correction_by_a_person_survives_a_new_version(services: Services, name: str) -> None:
    await drop(services, name)
    await ingest(services, name)
    await correct(await state_of(services, name), {"title": "Corrected title"}, services)
    await drop(services, name, GUIDE + "\nMore.\n")
    await ingest(services, name, "two")
    (document,) = await documents_of(services, name)
    assert (document["title"], document["edited_fields"]) == ("Corrected title", ["title"])


async def test_a_broken_new_version_fails_and_the_old_one_stays(services: Services, name: str) -> None:
    pdf = name.replace(".md", ".md.txt")
    await drop(services, pdf, "The old version is complete.")
    await ingest(services, pdf)
    await drop(services, pdf, b"\x00\x01\x02" * 50)
    result = await ingest(services, pdf, "two")
    assert result.outcome == "failed"
    state = await state_of(services, pdf)
    assert (state.status, state.holder) == ("failed", None)
    assert state.hint
    assert "not text" in (state.reason or "")
    assert len(await blocks_of(services, pdf)) == 1


async def test_who_finds_the_document_held_leaves_a_note_that_the_holder_follows(
    services: Services, name: str
) -> None:
    await drop(services, name)
    await ingest(services, name, "first")
    holder = IngestStep(blob_name=name, instance_id="holder")
    assert await Claim(services.documents, holder).take() is not None
    await drop(services, name, GUIDE + "\nA late line.\n")
    assert (await ingest(services, name, "other")).outcome == "noted"
    assert (await state_of(services, name)).pending
    assert (await ingest(services, name, "holder")).outcome == "ready"
    assert (await state_of(services, name)).holder is None


class RecordingClient:
    """Remembers which instances were started."""

    def __init__(self) -> None:
        self.started: dict[str, str] = {}

    async def get_status(self, instance: str) -> None:
        return None

    async def start_new(self, name: str, instance: str, payload: dict[str, str]) -> str:
        self.started[instance] = payload["blob_name"]
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
    for _ in range(2):  # each event comes twice
        await created(BlobReference(container=DOCUMENTS, name=name), client)
        await created(BlobReference(container=DOCUMENTS, name=f"{name}.acl.json"), client)
    event = {
        "subject": f"/blobServices/default/containers/{DOCUMENTS}/blobs/{name}",
        "eventType": "Microsoft.Storage.BlobDeleted",
        "id": "e1",
    }
    await deleted(func.QueueMessage(body=json.dumps(event).encode()), client)
    assert len(client.started) == 3
    assert set(client.started.values()) == {name}
