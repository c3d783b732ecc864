"""Two people use every feature and one is erased: no id or word of that person remains, and all data of the
other person is kept.

The tests also fail if data is found in a folder that docs/internals/stores.md does not name.
"""

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime

import httpx
import pytest
from azure.core.exceptions import ResourceExistsError
from azure.storage.queue.aio import QueueClient

from shared.access.models import UserContext
from shared.answering.models import TurnResults
from shared.conversations.files import announce_file
from shared.conversations.models import RememberTask
from shared.documents.ids import document_id
from shared.documents.requests import ImportRequest, UploadRequest, UploadTicket
from shared.documents.state import DocumentState
from shared.erasure import passes, threads
from shared.erasure.models import EraseUserTask
from shared.erasure.requests import ask_for_erasure, erasure_of, resume_user_erasures
from shared.evidence.models import WebPage
from shared.ingestion.changes import delete
from shared.ingestion.thread_files import blob_name_in
from shared.ingestion.uploads import make_ticket, receive, store
from shared.ingestion.web_import import content_of, upload_of
from shared.platform.hashing import digest
from shared.platform.names import DOCUMENTS, ERASURES_QUEUE, TURNS_QUEUE, WORK
from shared.platform.web_pages import FetchedPage
from shared.runs.run_files import RunFiles
from shared.wiring import Services
from tests.architecture.source_tree import ROOT
from tests.contract.erasure.stored import everything, telling
from tests.contract.ingestion.driving import ingest
from tests.servers import Azurite
from tests.unit.erasure.erasing_fakes import Orchestrations
from tests.unit.erasure.lives import Life, live

# Starts two servers, and searches everything that they store.
pytestmark = [pytest.mark.contract, pytest.mark.e2e]

FOLDERS = set(re.findall(r"`([a-z-]+/)`", (ROOT / "docs/internals/stores.md").read_text(encoding="utf-8")))


class KilledError(BaseException):
    """Simulates that the worker was killed."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the pause of 15 minutes between passes."""
    monkeypatch.setattr(passes, "LAST_PASS_AFTER_S", 0.0)
    monkeypatch.setattr(threads, "_READERS_S", 0.0)


async def messages(azurite: Azurite, queue: str) -> AsyncIterator[bytes]:
    """Take the messages of a queue, as its function would."""
    async with QueueClient.from_connection_string(azurite.connection_string, queue) as client:
        async for message in client.receive_messages():
            yield base64.b64decode(str(message.content))
            await client.delete_message(message)


async def empty(azurite: Azurite, queue: str) -> None:
    async with QueueClient.from_connection_string(azurite.connection_string, queue) as client:
        await client.clear_messages()


async def give_up(azurite: Azurite, user_id: str) -> None:
    """Put a permanently failed message about one of the user's turns into the poison queue."""
    task = RememberTask(owner_id=user_id, thread_id="t", run_id="r")
    async with QueueClient.from_connection_string(
        azurite.connection_string, f"{TURNS_QUEUE}-poison"
    ) as client:
        with suppress(ResourceExistsError):
            await client.create_queue()
        await client.send_message(task.model_dump_json())


async def whole_life(
    user_id: str, words: str, azurite: Azurite, services: Services
) -> tuple[Life, UploadTicket]:
    """Create data of every kind for a user: written and imported documents, an open upload URL, a quoted web
    page.
    """
    life = await live(user_id, words, services)

    async def content() -> AsyncIterator[bytes]:
        yield f"# Diary\n\n{words}".encode()

    state = await receive(UploadRequest(filename="diary.md"), content(), life.user, services)
    assert (await ingest(services, state.blob_name)).outcome == "ready"
    url = f"https://pumps.example/{words.replace(' ', '-')}"
    fetched = FetchedPage(url, "text/html", f"<p>A page about {words}".encode())
    imported = upload_of(ImportRequest(url=url), fetched)
    state = await receive(imported, content_of(fetched), life.user, services)
    assert (await ingest(services, state.blob_name)).outcome == "ready"
    await keep_snapshot(life, url, services)
    await bring_into_conversation(life, content(), services)
    ticket = await make_ticket(UploadRequest(filename="later.md"), life.user, services)
    await give_up(azurite, user_id)
    return life, ticket


async def bring_into_conversation(life: Life, content: AsyncIterator[bytes], services: Services) -> None:
    """Add a file to the thread of a question that is being answered."""
    thread_id = life.at_work.thread_id
    name = blob_name_in(thread_id, "private.md")
    await announce_file(thread_id, name, life.user, services)
    await store(name, UploadRequest(filename="private.md", acl=()), content, life.user, services)
    assert (await ingest(services, name)).outcome == "ready"


async def keep_snapshot(life: Life, url: str, services: Services) -> None:
    """Store the text of a web page as a turn does: only below the run, with nothing that names the person."""
    page = WebPage(
        final_url=url,
        title="A page",
        text=f"It speaks of {life.words}.",
        fetched_at=datetime.now(UTC),
        sha256="0" * 64,
        content_type="text/html",
    )
    results = TurnResults(messages=(), pages=(page,))
    await RunFiles(services.blobs, life.answered.run_id).write_value(results)


def marks_of(life: Life) -> tuple[str, ...]:
    """Return the texts to search for, including digests used as keys and words in URL encoding."""
    user_id = life.user.user_id
    hashed = hashlib.sha256(user_id.encode()).hexdigest()
    return (*life.marks, life.words.replace(" ", "-"), hashed, digest("uploader", user_id)[:16])


class Hands(Orchestrations):
    """Orchestrations, and the ingestions that deletions start."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self.gone: list[str] = []

    async def delete_document(self, state: DocumentState) -> None:
        await delete(state, self._services)
        self.gone.append(state.blob_name)

    async def ingest(self) -> None:
        while self.gone:
            assert (await ingest(self._services, self.gone.pop(), "removing")).outcome == "removed"


async def make_passes(azurite: Azurite, services: Services, hands: Hands) -> None:
    """Handle messages until none is left."""
    pass_count = -1
    while pass_count:
        pass_count = 0
        async for message in messages(azurite, ERASURES_QUEUE):
            task = EraseUserTask.model_validate_json(message)
            await passes.advance(task.erasure_id, services, hands.deps())
            await hands.ingest()
            pass_count += 1


async def break_off(azurite: Azurite, services: Services) -> None:
    """Run a first pass whose worker dies after threads and runs were erased. The message of the pass is
    lost.
    """
    dying = Hands(services)

    async def die(_: str) -> None:
        raise KilledError

    dying.forget = die  # type: ignore[assignment,method-assign]
    with pytest.raises(KilledError):
        await make_passes(azurite, services, dying)
    assert dying.stopped
    await empty(azurite, ERASURES_QUEUE)


async def test_nothing_of_the_one_is_left_anywhere_and_everything_of_the_other(
    azurite: Azurite, services: Services
) -> None:
    anna, address = await whole_life("anna-who-leaves", "heliotrope zebra", azurite, services)
    ben, _ = await whole_life("ben-who-stays", "vermilion lynx", azurite, services)
    await empty(azurite, TURNS_QUEUE)  # both turns are stored as memories already
    stored = await everything(azurite, services)
    of_anna, of_ben = telling(stored, marks_of(anna)), telling(stored, marks_of(ben))
    places = {place.partition(" ")[0] + " " + re.split(r"[ /]", place)[1] for place in of_anna}
    assert places >= {
        "table runs", "table threads", "table idempotency", "table userlimits", "table botturns",
        "table documents", "blob run-log", "blob work", "blob documents", "message turns-poison",
        "index memory_index", "index content_index", "index documents_index",
    }  # fmt: skip
    assert any("It speaks of heliotrope zebra." in text for text in of_anna.values())
    folders = {place.split("/")[1] + "/" for place in stored if place.startswith(f"blob {WORK}/")}
    assert folders <= FOLDERS

    await ask_for_erasure("anna-who-leaves", "delete", services)
    await break_off(azurite, services)
    assert telling(await everything(azurite, services), marks_of(anna)) != {}
    assert await resume_user_erasures(datetime.now(UTC), services) == 1
    hands = Hands(services)
    await make_passes(azurite, services, hands)
    ended = await erasure_of("anna-who-leaves", services.blobs)
    assert (ended.status, ended.erased.threads, ended.erased.runs) == ("completed", 2, 4)
    assert {name: count for name, count in ended.erased.model_dump().items() if not count} == {}
    assert set(anna.ids[:3]) <= set(hands.forgotten)
    stored = await everything(azurite, services)
    # The audit trail keeps the actions under a pseudonym. The ids of runs in it lead to no data.
    assert {
        place for place in telling(stored, marks_of(anna)) if not place.startswith("table audit ")
    } == set()
    naming = [mark for mark in marks_of(anna) if mark not in anna.ids]
    assert telling(stored, naming) == {}
    # The erasure read other people's poison messages, which are therefore invisible for half a minute.
    assert {**of_ben, **telling(stored, marks_of(ben))} == of_ben
    missing = of_ben.keys() - telling(stored, marks_of(ben)).keys()
    assert [place for place in missing if not place.startswith("message turns-poison")] == []
    await send_late(address, services)
    naming_again = telling(await everything(azurite, services), naming)
    assert naming_again == {}


async def send_late(address: UploadTicket, services: Services) -> None:
    """Use an upload URL that was open when its user was erased, and process the file's event."""
    response = await asyncio.to_thread(httpx.put, address.url, content=b"# Diary", headers=address.headers)
    assert response.status_code == 201
    (name,) = [
        blob.name
        async for blob in services.blobs.list_blobs(DOCUMENTS, "uploads/")
        if document_id(blob.name) == address.doc_id
    ]
    assert (await ingest(services, name, "late")).outcome == "removed"


async def test_of_a_person_of_whom_nothing_is_kept_nothing_is_counted(
    azurite: Azurite, services: Services
) -> None:
    await ask_for_erasure("nobody'; or 1 eq 1 or owner_id eq 'x", "delete", services)
    shared = UserContext(user_id="dora-who-stays")

    async def content() -> AsyncIterator[bytes]:
        yield b"# Ours"

    request = UploadRequest(filename="ours.md", acl=("engineering",))
    state = await receive(request, content(), shared, services)
    await make_passes(azurite, services, Hands(services))
    ended = await erasure_of("nobody'; or 1 eq 1 or owner_id eq 'x", services.blobs)
    assert set(ended.erased.model_dump().values()) == {0}
    assert await services.blobs.properties(DOCUMENTS, state.blob_name) is not None
