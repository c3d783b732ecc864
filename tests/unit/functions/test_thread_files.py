"""Tests for files of one conversation over HTTP: visible to its owner alone, and kept until it is deleted."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from functions.ingest import start_ingestions
from shared.answering.inline import run_to_end
from shared.answering.models import Preparation
from shared.answering.provenance import stored_provenance
from shared.answering.runs import Arrival, begin_run
from shared.conversations.files import MAX_FILES_AT_ONCE, expire_files
from shared.conversations.models import EraseTask
from shared.documents.state import DocumentState
from shared.erasure import passes, threads
from shared.erasure.models import EraseUserTask
from shared.erasure.passes import EraseDependencies, advance
from shared.erasure.requests import ask_for_erasure
from shared.erasure.threads import erase
from shared.ingestion.changes import delete
from shared.ingestion.registry import FORMATS
from shared.ingestion.rights import note_event
from shared.platform.errors import ConflictError, ModelFixableError
from shared.platform.language_models.models import Prompt
from shared.platform.names import DOCUMENTS, ERASURES_QUEUE, WORK
from shared.platform.search import SearchRequest
from shared.runs.events import ThoughtEvent, ValueLine
from shared.runs.journal import Journal
from shared.runs.models import ChatRequest, RunRequest
from shared.runs.run_files import RunFiles
from shared.wiring import Services
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.models import Reply, ScriptedChatModel
from tests.fakes.stores import InMemoryTaskQueues
from tests.queued_work import remember_queued, stop_nothing
from tests.unit.functions.http_app import IngestingClient, as_user, connect, end_streams_soon, problem_of
from tests.unit.functions.http_app import settings_of_tests as settings
from tests.unit.ingestion.hostile_files import docx_of, docx_with_macros
from tests.unit.ingestion.test_parser_fuzzing import seed_file
from tests.world import ANNA, World, plan

WORD = "Zanzibar"
FACT = f"The {WORD} pump runs at 21 bar."
NOTES = f"# Notes\n\n{FACT}\n".encode()
TABLE = f"Pump,Bar\n{WORD},21\n".encode()


def model() -> ScriptedChatModel:
    """Return a model that cites the file if the prompt contains it and describes documents by rules."""

    def answer(prompt: Prompt) -> Reply:
        if prompt.name == "plan":
            return plan(standalone_question="", search_queries=(), todo=())
        if prompt.name != "answer":
            return ModelFixableError("This model says nothing to that.")
        doc_ids = re.findall("[0-9a-f]{32}", prompt.user)
        if not doc_ids or FACT not in prompt.user:
            return "The documents don't say."
        return f'It runs at 21 bar. <cite doc_id="{doc_ids[0]}" quote="{FACT}"/>'

    return ScriptedChatModel(answer=answer)


@pytest.fixture
async def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    monkeypatch.setattr(threads, "_READERS_S", 0.0)
    monkeypatch.setattr(passes, "LAST_PASS_AFTER_S", 0.0)
    world = World(model(), settings=settings(subagents_enabled=False, sharing=True), engine=True)
    await world.add("manual", "The pump runs at 15 bar.", readers=("engineering",))
    return connect(monkeypatch, world.services)


async def new_thread(client: httpx.AsyncClient) -> str:
    response = await client.post("/threads", json={})
    assert response.status_code == 201, response.text
    return str(response.json()["thread_id"])


async def add(
    client: httpx.AsyncClient, thread_id: str, name: str = "notes.md", content: bytes = NOTES
) -> dict[str, Any]:
    response = await client.post(f"/threads/{thread_id}/files", files={"file": (name, content)})
    assert response.status_code == 202, response.text
    assert response.headers["location"] == f"/api/threads/{thread_id}/files"
    file: dict[str, Any] = response.json()
    return file


@pytest.mark.parametrize("suffix", sorted(FORMATS))
async def test_a_file_of_every_type_is_read_for_its_conversation_only(
    anna: httpx.AsyncClient, durable: IngestingClient, tmp_path: Path, suffix: str
) -> None:
    thread_id = await new_thread(anna)
    word = {".docx": docx_of, ".docm": docx_with_macros}
    content = word[suffix]("a b") if suffix in word else seed_file(suffix, tmp_path)
    file = await add(anna, thread_id, f"file{suffix}", content)
    assert await durable.run() == ["ready"]
    (read,) = (await anna.get(f"/threads/{thread_id}/files")).json()["files"]
    assert (read["doc_id"], read["filename"], read["status"]) == (file["doc_id"], f"file{suffix}", "ready")
    listed = (await anna.get("/documents")).json()["documents"]
    assert file["doc_id"] not in {document["doc_id"] for document in listed}


async def ask(
    services: Services, thread_id: str | None, question: str = f"At what pressure does the {WORD} pump run?"
) -> RunRequest:
    request = await begin_run(ChatRequest(question=question, thread_id=thread_id), ANNA, services)
    await run_to_end(request.run_id, services)
    return request


async def evidence_of(services: Services, request: RunRequest) -> set[str]:
    provenance = await stored_provenance(request.run_id, services.blobs)
    return {one.doc_id for one in provenance.documents}


async def erase_waiting(services: Services, durable: IngestingClient) -> None:
    """Handle queued erasures and the ingestions they start, until none remains."""
    assert isinstance(services.queues, InMemoryTaskQueues)

    async def delete_document(state: DocumentState) -> None:
        await delete(state, services)
        await start_ingestions(client_of(durable), services)

    dependencies = EraseDependencies(stop_nothing, stop_nothing, delete_document)
    for _ in range(20):
        await start_ingestions(client_of(durable), services)
        await durable.run()
        for message in services.queues.take(ERASURES_QUEUE):
            if "erasure_id" in message:
                task = EraseUserTask.model_validate_json(message)
                await advance(task.erasure_id, services, dependencies)
            else:
                await erase(EraseTask.model_validate_json(message), services, stop_nothing)


async def left_of(services: Services, *marks: str) -> list[str]:
    """Return the places in all stores that contain one of these marks."""
    assert isinstance(services.blobs, InMemoryBlobStore)
    texts = {
        f"{container}/{name}": blob.content.decode("utf-8", "replace")
        for container, blobs in services.blobs.containers.items()
        for name, blob in blobs.items()
    }
    for name in ("runs", "threads", "documents", "idempotency", "user_limits"):
        table = getattr(getattr(services, name), "table", None)
        texts |= {f"{name} {key}": str(row) for key, row in (table.rows if table else {}).items()}
    texts |= {f"log {run_id}": str(log) for run_id, log in services.run_log.logs.items()}  # type: ignore[attr-defined]
    for name in ("content_index", "documents_index", "memory_index"):
        rows = (await getattr(services, name).search(SearchRequest(top=1000))).rows
        texts |= {f"{name} {number}": str(row) for number, row in enumerate(rows)}
    # Change rows keep ids for two days.
    texts = {place: text for place, text in texts.items() if "'~changed-" not in place}
    return [place for place, text in texts.items() if any(mark in text or mark in place for mark in marks)]


async def test_its_owner_sees_a_file_with_its_progress_and_others_no_thread(
    services: Services, durable: IngestingClient, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    thread_id = await new_thread(anna)
    file = await add(anna, thread_id)
    assert (file["filename"], file["status"], file["size_bytes"]) == ("notes.md", "queued", len(NOTES))
    assert await durable.run() == ["ready"]
    bad = await add(anna, thread_id, "broken.pdf", b"no PDF")
    await durable.run()
    listed = (await anna.get(f"/threads/{thread_id}/files")).json()
    assert [(one["filename"], one["status"]) for one in listed["files"]] == [
        ("notes.md", "ready"),
        ("broken.pdf", "failed"),
    ]
    assert listed["files"][1]["status_reason"]
    for path, method in (
        (f"/threads/{thread_id}/files", "GET"),
        (f"/threads/{thread_id}/files/{bad['doc_id']}", "DELETE"),
    ):
        for person in (as_user(app, "ben"), as_user(app, "olga", roles=["admin"])):
            assert problem_of(await person.request(method, path)) == (404, "NotFoundError")
    refused = await as_user(app, "ben").post(
        f"/threads/{thread_id}/files", files={"file": ("notes.md", NOTES)}
    )
    assert problem_of(refused) == (404, "NotFoundError")


async def test_nothing_but_its_conversation_contains_a_file(
    services: Services, durable: IngestingClient, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    end_streams_soon(services)
    thread_id = await new_thread(anna)
    doc_id = (await add(anna, thread_id))["doc_id"]
    await add(anna, thread_id, "broken.pdf", b"no PDF")
    await durable.run()
    olga = as_user(app, "olga", roles=["admin"])
    for client in (anna, olga):
        for path in (
            "/documents",
            "/documents/facets",
            f"/documents?q={WORD}",
            f"/search?q={WORD}",
            "/documents?status=failed",
            "/documents/events",
        ):
            answer = await client.get(path)
            assert answer.status_code == 200, (path, answer.text)
            assert not [one for one in (WORD, "notes.md", "broken.pdf", doc_id) if one in answer.text], path
        for method, path in (
            ("GET", f"/documents/{doc_id}"),
            ("PATCH", f"/documents/{doc_id}"),
            ("PUT", f"/documents/{doc_id}/access"),
            ("POST", f"/documents/{doc_id}/reingest"),
            ("DELETE", f"/documents/{doc_id}"),
        ):
            body = {"title": "x"} if method == "PATCH" else {"acl": ["*"]}
            refused = await client.request(method, path, json=body if method in ("PATCH", "PUT") else None)
            assert problem_of(refused) == (404, "DocumentNotFoundError"), path
    for path in ("/maintenance/audit", "/maintenance/failed", "/audit"):
        response = await olga.get(path)
        assert response.status_code == 200
        assert "broken.pdf" not in response.text, path
        assert "notes.md" not in response.text, path
    assert (await anna.get(f"/documents/{doc_id}/content")).content == NOTES
    assert (await olga.get(f"/documents/{doc_id}/content")).status_code == 404


async def test_runs_of_its_thread_use_a_file_and_no_other_run_does(
    services: Services, durable: IngestingClient, anna: httpx.AsyncClient
) -> None:
    thread_id, other = await new_thread(anna), await new_thread(anna)
    doc_id = (await add(anna, thread_id))["doc_id"]
    await durable.run()
    assert doc_id in await evidence_of(services, await ask(services, thread_id))
    for elsewhere in (None, other):
        assert doc_id not in await evidence_of(services, await ask(services, elsewhere))
    with pytest.raises(ConflictError):  # as from a client that uses another channel
        await begin_run(
            ChatRequest(question="Which?", thread_id=thread_id), ANNA, services, Arrival(channel="mcp")
        )


async def test_its_answers_are_neither_remembered_nor_shared_nor_branched(
    services: Services, durable: IngestingClient, anna: httpx.AsyncClient
) -> None:
    thread_id = await new_thread(anna)
    before = await ask(services, thread_id, "At what pressure does the pump run?")
    await add(anna, thread_id)
    await durable.run()
    run = await ask(services, thread_id)
    later = await ask(services, thread_id, "And why?")
    await remember_queued(services)
    remembered = await services.memory_index.search(SearchRequest(top=10))
    assert {str(row["memory_id"]) for row in remembered.rows} <= {before.run_id}
    for one in (run, later):
        listed = (await anna.get(f"/runs/{one.run_id}/shares")).json()
        assert "conversation_file" in listed["obstacles"]
        branched = await anna.post(
            "/threads", json={"branch": {"thread_id": thread_id, "run_id": one.run_id}}
        )
        assert problem_of(branched) == (409, "ConflictError")
    branched = await anna.post("/threads", json={"branch": {"thread_id": thread_id, "run_id": before.run_id}})
    assert branched.status_code == 201
    assert (await anna.get(f"/threads/{branched.json()['thread_id']}/files")).json()["count"] == 0


async def test_equal_files_are_neither_grouped_nor_reused(
    services: Services, durable: IngestingClient, anna: httpx.AsyncClient
) -> None:
    response = await anna.post("/documents", files={"file": ("copy.md", NOTES)})
    await durable.run()
    thread_id = await new_thread(anna)
    doc_id = (await add(anna, thread_id))["doc_id"]
    await durable.run()
    row = await services.documents.row(doc_id)
    assert row is not None
    assert row.content_hash == ""
    assert len(doc_id) != len(response.json()["doc_id"])
    listing = (await anna.get(f"/documents?q={WORD}")).json()
    assert [one["doc_id"] for one in listing["documents"]] == [response.json()["doc_id"]]


async def test_five_new_files_fit_a_question(
    services: Services, durable: IngestingClient, anna: httpx.AsyncClient
) -> None:
    thread_id = await new_thread(anna)
    for number in range(MAX_FILES_AT_ONCE):
        await add(anna, thread_id, f"notes-{number}.md")
    await add(anna, thread_id, "notes-0.md")  # added again
    too_many = {"file": ("more.md", NOTES)}
    refused = await anna.post(f"/threads/{thread_id}/files", files=too_many)
    assert problem_of(refused) == (409, "ConflictError")
    ticket = await anna.post(f"/threads/{thread_id}/files/uploads", json={"filename": "more.md"})
    assert problem_of(ticket) == (409, "ConflictError")
    await durable.run()
    await ask(services, thread_id)
    assert (await anna.post(f"/threads/{thread_id}/files", files=too_many)).status_code == 202


async def test_a_large_file_goes_to_storage_and_is_of_its_thread(
    services: Services, durable: IngestingClient, anna: httpx.AsyncClient
) -> None:
    thread_id = await new_thread(anna)
    response = await anna.post(f"/threads/{thread_id}/files/uploads", json={"filename": "notes.md"})
    assert response.status_code == 201, response.text
    name = f"conversation-files/{thread_id}/notes.md"
    assert name in response.json()["url"]
    (waiting,) = (await anna.get(f"/threads/{thread_id}/files")).json()["files"]
    assert (waiting["status"], waiting["size_bytes"]) == ("queued", None)
    await services.blobs.write(DOCUMENTS, name, NOTES)
    await note_event(name, services)
    await start_ingestions(client_of(durable), services)
    assert await durable.run() == ["ready"]
    (ready,) = (await anna.get(f"/threads/{thread_id}/files")).json()["files"]
    assert ready["status"] == "ready"
    too_large = {"filename": "big.md", "size_bytes": 10**12}
    refused = await anna.post(f"/threads/{thread_id}/files/uploads", json=too_large)
    assert problem_of(refused) == (413, "PayloadTooLargeError")


async def test_a_file_that_arrives_after_its_thread_was_deleted_is_deleted_unread(
    services: Services, durable: IngestingClient, anna: httpx.AsyncClient
) -> None:
    thread_id = await new_thread(anna)
    await anna.post(f"/threads/{thread_id}/files/uploads", json={"filename": "notes.md"})
    await anna.delete(f"/threads/{thread_id}")
    name = f"conversation-files/{thread_id}/notes.md"
    await services.blobs.write(DOCUMENTS, name, NOTES)
    await note_event(name, services)
    await start_ingestions(client_of(durable), services)
    await erase_waiting(services, durable)
    assert await left_of(services, WORD, "notes.md") == []


@pytest.mark.parametrize("kind", ["file", "clear", "delete", "person", "expiry"])
@pytest.mark.parametrize(("filename", "content"), [("notes.md", NOTES), ("numbers.csv", TABLE)])
async def test_no_word_is_left(
    services: Services,
    durable: IngestingClient,
    anna: httpx.AsyncClient,
    kind: str,
    filename: str,
    content: bytes,
) -> None:
    """Check that no text of the file remains, nor, unless it expired, of answers that may quote it."""
    thread_id = await new_thread(anna)
    file = await add(anna, thread_id, filename, content)
    await durable.run()
    run = await ask(services, thread_id, "At what pressure does the pump run?")
    await ask(services, thread_id, "And why?")
    assert file["doc_id"] in await evidence_of(services, run)
    before = await left_of(services, WORD)
    assert len(before) > 5
    if kind == "file":
        removed = await anna.delete(f"/threads/{thread_id}/files/{file['doc_id']}")
        assert removed.json() == {"doc_id": file["doc_id"], "cleared": True}
    elif kind == "clear":
        assert (await anna.post(f"/threads/{thread_id}/clear")).status_code == 200
    elif kind == "delete":
        assert (await anna.delete(f"/threads/{thread_id}")).status_code == 204
    elif kind == "person":
        await ask_for_erasure("anna", "keep", services)
    else:
        assert await expire_files(datetime.now(UTC) + timedelta(days=31), services) == 1
    row = await services.documents.row(file["doc_id"])
    assert row is None or kind == "person"
    await erase_waiting(services, durable)
    left = await left_of(services, WORD, filename, file["doc_id"])
    if kind != "expiry":
        assert left == []
        return
    assert not [
        place for place in left if "index" in place or place.startswith(("documents", WORK + "/versions"))
    ]
    messages = (await anna.get(f"/threads/{thread_id}/messages")).json()["messages"]
    assert [message["answer"] is not None for message in messages] == [True, True]


def client_of(durable: IngestingClient) -> Any:
    return durable


async def test_a_file_that_no_question_used_goes_alone(
    services: Services, durable: IngestingClient, anna: httpx.AsyncClient
) -> None:
    thread_id = await new_thread(anna)
    run = await ask(services, thread_id, "At what pressure does the pump run?")
    file = await add(anna, thread_id)
    await durable.run()
    assert services.threads is not None
    removed = await anna.delete(f"/threads/{thread_id}/files/{file['doc_id']}")
    assert removed.json()["cleared"] is False
    await erase_waiting(services, durable)
    messages = (await anna.get(f"/threads/{thread_id}/messages")).json()["messages"]
    assert [message["run_id"] for message in messages] == [run.run_id]
    assert await left_of(services, WORD) == []
    again = await anna.delete(f"/threads/{thread_id}/files/{file['doc_id']}")
    assert problem_of(again) == (404, "DocumentNotFoundError")


async def test_files_of_used_threads_do_not_expire(
    services: Services, durable: IngestingClient, anna: httpx.AsyncClient
) -> None:
    thread_id = await new_thread(anna)
    await add(anna, thread_id)
    await durable.run()
    soon = datetime.now(UTC) + timedelta(days=29)
    assert await expire_files(soon, services) == 0


async def test_a_question_waits_for_its_files_and_its_time_begins_afterwards(
    services: Services, durable: IngestingClient, anna: httpx.AsyncClient
) -> None:
    thread_id = await new_thread(anna)
    doc_id = (await add(anna, thread_id))["doc_id"]
    request = await begin_run(ChatRequest(question="What pressure?", thread_id=thread_id), ANNA, services)
    running = asyncio.create_task(run_to_end(request.run_id, services))
    await asyncio.sleep(0.2)
    assert not running.done()
    assert await durable.run() == ["ready"]
    await running
    assert doc_id in await evidence_of(services, request)
    journal = Journal(services.run_log, services.blobs, request.run_id)
    await journal.read()
    codes = [event.code for event in journal.events if isinstance(event, ThoughtEvent)]
    assert codes[:2] == ["files", "planning"]
    (line,) = [one for one in journal.events if isinstance(one, ValueLine) and one.part == "preparation"]
    stored = (await journal.value(line, Preparation)).stored
    assert stored.resumed_at is not None
    assert stored.resumed_at - request.created_at > timedelta(seconds=0.9)


async def test_after_20_seconds_the_answer_names_the_file_that_it_lacks(
    services: Services, anna: httpx.AsyncClient
) -> None:
    thread_id = await new_thread(anna)
    await add(anna, thread_id)
    long_ago = datetime.now(UTC) - timedelta(seconds=21)
    request = await begin_run(
        ChatRequest(question="What pressure?", thread_id=thread_id), ANNA, services, Arrival(long_ago)
    )
    await run_to_end(request.run_id, services)
    run = (await anna.get(f"/runs/{request.run_id}")).json()
    assert run["status"] == "completed"
    assert "notes.md" in str(run["answer"]["warnings"])
    assert (await RunFiles(services.blobs, request.run_id).request()).has_files
