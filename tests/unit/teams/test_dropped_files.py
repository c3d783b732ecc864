"""Tests for files dropped into a chat: stored for the user, announced once ingested, or refused."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from shared.access.models import UserContext
from shared.conversations.threads import delete_thread
from shared.documents.ids import SIDECAR_SUFFIX, UPLOADS
from shared.documents.requests import UploadRequest
from shared.documents.state import DocumentState
from shared.ingestion.thread_files import blob_name_in
from shared.ingestion.uploads import store
from shared.platform.errors import BadDocumentError, DependencyError
from shared.platform.names import DOCUMENTS
from shared.retrieval.models import DocumentStatus
from shared.teams import dropped_files
from shared.teams.models import BotAttachment
from tests.fakes.blob_store import InMemoryBlobStore
from tests.unit.teams.chat import ANSWERED, GROUP, PERSONAL, QUESTION, Chat, chat

MANUAL = BotAttachment(name="manual.pdf", content_type="application/pdf", url="https://files.example/1")
NOTES = BotAttachment(name="notes.txt", content_type="text/plain", url="https://files.example/2")


async def with_state(status: DocumentStatus, doc_id: str = "manual", **fields: str) -> Chat:
    """Return a chat with a dropped file in this processing state."""
    bot = await chat()
    await put_state(bot, doc_id, status, **fields)
    return bot


async def put_state(bot: Chat, doc_id: str, status: DocumentStatus, **fields: str) -> None:
    state = DocumentState(
        doc_id=doc_id,
        blob_name=f"anna/{doc_id}.pdf",
        filename=f"{doc_id}.pdf",
        status=status,
        updated_at=datetime.now(UTC),
        **fields,
    )
    documents = bot.services.documents
    existing = await documents.get(doc_id)
    if existing is None:
        await documents.create(state)
    else:
        await documents.replace(existing.model_copy(update={"status": status, **fields}))


async def test_a_file_becomes_the_persons_document_and_is_told_of_when_it_is_read() -> None:
    bot = await with_state("ready")
    receipt, ready = await bot.write(attachments=(MANUAL,))
    assert bot.stored == ["anna/manual.pdf"]
    assert "reading **manual.pdf**" in receipt.reply.text
    assert "have read **manual.pdf**" in ready.reply.text
    assert all(name == "reply_in_channel" for name, _ in bot.orchestrations.started.values())


async def test_files_belong_to_the_threads_of_the_questions_around_them() -> None:
    bot = await with_state("ready")
    await bot.write(attachments=(MANUAL,))
    await bot.write(QUESTION)
    await bot.write(attachments=(NOTES,))
    first = (await bot.turn()).thread_id
    assert bot.threads_of_files == [first, first]
    await bot.write("/new")
    await bot.write(QUESTION, attachments=(NOTES,))
    assert bot.threads_of_files[2] == (await bot.turn()).thread_id != first


async def test_a_file_for_a_deleted_thread_begins_another() -> None:
    bot = await with_state("ready")
    await bot.write(QUESTION)
    deleted = (await bot.turn()).thread_id
    assert deleted is not None
    await delete_thread(deleted, UserContext(user_id="anna"), bot.services)
    await bot.write(attachments=(MANUAL,))
    assert bot.threads_of_files == [(await bot.turn()).thread_id] != [deleted]


async def with_files(*names: str) -> Chat:
    """Return a chat whose thread has files with these names."""
    bot = await with_state("ready")
    await bot.write(attachments=(MANUAL,))
    (thread_id,) = bot.threads_of_files
    for name in names:
        request = UploadRequest(filename=name, acl=())
        anna = UserContext(user_id="anna")
        await store(blob_name_in(thread_id, name), request, _content(name), anna, bot.services)
    return bot


async def _content(name: str) -> AsyncIterator[bytes]:
    yield f"# {name}".encode()


def documents_of(bot: Chat) -> dict[str, bytes]:
    """Return the content of Anna's documents by file name."""
    assert isinstance(bot.services.blobs, InMemoryBlobStore)
    blobs = bot.services.blobs.containers[DOCUMENTS].items()
    uploads = ((name.rpartition("/")[2], blob) for name, blob in blobs if name.startswith(UPLOADS))
    return {name: blob.content for name, blob in uploads if not name.endswith(SIDECAR_SUFFIX)}


@pytest.mark.parametrize("command", ["/keep", "keep", "/behalten", "/KEEP **Plan.md**"])
async def test_a_file_that_is_kept_becomes_a_document_of_the_person(command: str) -> None:
    bot = await with_files("plan.md")
    (message,) = await bot.write(command)
    assert "**plan.md** is now one of your documents" in message.reply.text
    assert documents_of(bot) == {"plan.md": b"# plan.md"}
    (message,) = await bot.write(command)
    assert "already called **plan.md**" in message.reply.text


async def test_of_several_files_the_named_one_is_kept() -> None:
    bot = await with_files("plan.md", "site map.md")
    (message,) = await bot.write("/keep")
    assert "Write /keep and its name: plan.md, site map.md" in message.reply.text
    (message,) = await bot.write("/keep atlas.md")
    assert "plan.md, site map.md" in message.reply.text
    assert documents_of(bot) == {}
    await bot.write("/keep site map.md")
    assert list(documents_of(bot)) == ["site map.md"]


async def test_without_a_file_there_is_nothing_to_keep() -> None:
    bot = await chat()
    assert "no file" in (await bot.write("/keep"))[0].reply.text
    assert "no file" in (await bot.write("/keep x.md", conversation=GROUP))[0].reply.text
    bot = await with_files("plan.md")
    await bot.write("/new")
    assert "no file" in (await bot.write("/keep plan.md"))[0].reply.text


async def test_a_question_that_comes_with_a_file_is_answered_from_it() -> None:
    bot = await with_state("ready")
    *_, message = await bot.write(QUESTION, attachments=(MANUAL,))
    assert ANSWERED in message.reply.text
    (run_id,) = [key for key, (name, _) in bot.orchestrations.started.items() if name == "answer_question"]
    from shared.runs.run_files import RunFiles

    assert (await RunFiles(bot.services.blobs, run_id).request()).doc_ids == ("manual",)


async def test_a_file_that_takes_long_is_looked_at_again_and_again_with_pauses() -> None:
    bot = await with_state("embedding")
    receipt, slow = await bot.write(attachments=(MANUAL,))
    looks = [step for step in bot.steps if step.kind == "look_at_files"]
    assert len(looks) == 61
    assert looks[0].delay_s == 2.0
    assert max(step.delay_s for step in looks) == 15.0
    assert "reading" in receipt.reply.text
    assert "takes longer" in slow.reply.text


async def test_a_file_that_is_read_does_not_wait_for_a_slow_one_to_be_told_of() -> None:
    bot = await with_state("ready")
    await put_state(bot, "notes", "embedding")
    _, ready, slow = await bot.write(attachments=(MANUAL, NOTES))
    assert ("manual.pdf" in ready.reply.text, "notes" in ready.reply.text) == (True, False)
    assert ("manual.pdf" in slow.reply.text, "notes" in slow.reply.text) == (False, True)


async def test_a_file_that_cannot_be_read_is_told_with_its_reason() -> None:
    bot = await with_state("failed", reason="The file is encrypted.")
    _, message = await bot.write(QUESTION, attachments=(MANUAL,))
    assert "The file is encrypted." in message.reply.text
    assert all(name == "reply_in_channel" for name, _ in bot.orchestrations.started.values())


async def test_a_german_is_told_in_german_why_a_file_cannot_be_read() -> None:
    bot = await with_state("failed", reason="The file is encrypted.", failure="encrypted")
    bot.refused = {"notes.txt": BadDocumentError("The file is empty (0 bytes).", failure="empty")}
    german = PERSONAL.model_copy(update={"locale": "de-DE"})
    receipt, message = await bot.write(attachments=(NOTES, MANUAL), conversation=german)
    assert "Die Datei ist leer." in receipt.reply.text
    assert "mit einem Kennwort geschützt" in message.reply.text


async def test_files_that_are_refused_do_not_keep_the_others() -> None:
    bot = await with_state("ready")
    bot.refused = {"notes.txt": BadDocumentError("It is no text.")}
    receipt, ready = await bot.write(attachments=(NOTES, MANUAL))
    assert "**notes.txt**: It is no text." in receipt.reply.text
    assert bot.stored == ["anna/manual.pdf"]
    assert "manual.pdf" in ready.reply.text


async def test_a_file_that_cannot_be_had_is_tried_again_once() -> None:
    bot = await chat()
    bot.refused = {"notes.txt": DependencyError("files.internal is down")}
    (message,) = await bot.write(attachments=(NOTES,))
    assert [(step.kind, step.attempt) for step in bot.steps][1:] == [("store_files", 1), ("end", 0)]
    assert "cannot be reached" in message.reply.text
    assert "internal" not in message.reply.text


async def test_no_files_are_taken_where_several_read_along() -> None:
    bot = await chat()
    (message,) = await bot.write(attachments=(MANUAL,), conversation=GROUP)
    assert "only in a personal chat" in message.reply.text
    assert bot.stored == []


async def test_files_that_take_long_to_fetch_are_stored_in_several_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dropped_files, "STORING_S", 0.0)
    bot = await with_state("ready")
    for name in ("notes", "b"):
        await put_state(bot, name, "ready")
    bot.refused = {"c.pdf": BadDocumentError("It is no PDF.")}
    others = tuple(MANUAL.model_copy(update={"name": name}) for name in ("c.pdf", "b.pdf"))
    *receipts, announcement = await bot.write(attachments=(MANUAL, NOTES, *others))
    assert bot.stored == ["anna/manual.pdf", "anna/notes.txt", "anna/b.pdf"]
    assert [receipt.reply.text.count("**") for receipt in receipts] == [2, 2, 2, 2]
    assert [step.part for step in bot.steps if step.kind == "store_files"] == [0, 1, 2, 3]
    assert all(name in announcement.reply.text for name in ("manual.pdf", "notes.pdf", "b.pdf"))


async def test_a_command_beside_a_file_loses_neither() -> None:
    bot = await with_state("ready")
    *_, message = await bot.write("/new", attachments=(MANUAL,))
    assert bot.stored == ["anna/manual.pdf"]
    assert "new conversation begins" in message.reply.text


async def test_names_of_files_bring_no_markup_of_their_own() -> None:
    bot = await chat()
    bot.refused = {"[x](https://evil.example).txt": BadDocumentError("It is no text.")}
    evil = NOTES.model_copy(update={"name": "[x](https://evil.example).txt"})
    (message,) = await bot.write(attachments=(evil,))
    assert r"\[x\]" in message.reply.text
