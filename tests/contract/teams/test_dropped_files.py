"""A file dropped into a chat becomes its sender's document, if its content matches its name."""

from pathlib import Path
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.conversations.threads import new_thread
from shared.documents.ids import thread_of
from shared.platform.errors import BadDocumentError, GroundworkError, PayloadTooLargeError
from shared.platform.names import DOCUMENTS
from shared.teams.dropped_files import store_attachment
from shared.teams.models import BotAttachment
from tests.contract.clients.scripted_server import Answer
from tests.contract.teams.file_channel import CONVERSATION, PDF, SHAREPOINT, channel
from tests.contract.teams.signing import bot_settings
from tests.fakes.services import fake_services

pytestmark = [pytest.mark.contract, pytest.mark.attack("outgoing addresses")]


ADA = UserContext(user_id="ada")
THREAD = "a" * 32


async def dropped(
    folder: Path, name: str, content: bytes, content_type: str = "a", **changes: Any
) -> tuple[Any, Any]:
    """Return the document of a dropped file, and all services."""
    async with channel(folder, Answer(body=content), **changes) as teams:
        services = fake_services(settings=bot_settings(**changes), bot_files=teams.files)
        attachment = BotAttachment(name=name, content_type=content_type, url=SHAREPOINT)
        try:
            await new_thread(None, ADA, services.threads, THREAD)
            state = await store_attachment(attachment, CONVERSATION, ADA, THREAD, services)
        except GroundworkError as error:
            return error, services
        return state, services


async def test_a_dropped_file_belongs_to_the_thread_of_who_dropped_it(tmp_path: Path) -> None:
    state, services = await dropped(tmp_path, "Report 2024.pdf", PDF)
    assert state.wanted_rights.owner_id == "ada"
    assert state.wanted_rights.acl == ("ada",)
    assert thread_of(state.blob_name) == THREAD
    assert (await services.threads.get("ada", THREAD)).has_files
    assert await services.blobs.read(DOCUMENTS, state.blob_name) == PDF


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"\x89PNG\r\n\x1a\nx", "picture-1.png"),
        (b"\xff\xd8\xff\xe0x", "picture-1.jpg"),
        (b"RIFF\x00\x00\x00\x00WEBPx", "picture-1.webp"),
    ],
)
async def test_a_pasted_picture_is_of_the_kind_that_its_bytes_are(
    tmp_path: Path, content: bytes, name: str
) -> None:
    state, _ = await dropped(tmp_path, "picture-1.png", content, content_type="image/*")
    assert state.filename == name


async def test_a_picture_with_a_name_of_its_own_keeps_it(tmp_path: Path) -> None:
    refused, _ = await dropped(tmp_path, "photo.png", b"\xff\xd8\xff\xe0x", content_type="image/png")
    assert isinstance(refused, BadDocumentError)


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("report.pdf", b"PK\x03\x04" + b"x" * 100, BadDocumentError),
        ("report.pdf", b"MZ\x90\x00", BadDocumentError),
        ("report.docx", b"%PDF-1.7", BadDocumentError),
        ("notes.txt", b"%PDF-1.7", BadDocumentError),
        ("empty.pdf", b"", BadDocumentError),
        ("virus.exe", b"MZ\x90\x00", BadDocumentError),
        ("noname", PDF, BadDocumentError),
        ("../../x.acl.json", b"{}", GroundworkError),
        ("big.pdf", b"%PDF-" + b"x" * 5000, PayloadTooLargeError),
    ],
)
async def test_a_file_of_another_kind_than_its_name_is_not_stored(
    tmp_path: Path, name: str, content: bytes, error: type[GroundworkError]
) -> None:
    refused, services = await dropped(tmp_path, name, content, max_document_bytes=4000)
    assert isinstance(refused, error)
    assert not services.blobs.containers.get(DOCUMENTS)


async def test_a_file_that_nobody_could_store_is_not_even_fetched(tmp_path: Path) -> None:
    async with channel(tmp_path, Answer(body=PDF)) as teams:
        services = fake_services(settings=bot_settings(), bot_files=teams.files)
        attachment = BotAttachment(name="virus.exe", content_type="a", url=SHAREPOINT)
        await new_thread(None, ADA, services.threads, THREAD)
        with pytest.raises(BadDocumentError):
            await store_attachment(attachment, CONVERSATION, ADA, THREAD, services)
        assert teams.server.requests == []
