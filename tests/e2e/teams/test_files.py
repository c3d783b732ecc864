"""Files dropped in a chat. The Playground doesn't support them, so the tests send the activities of Teams."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from local.run_all.demo import documents_of
from samples.acl import ANNA, BEN
from tests.e2e.stack_client import eventually
from tests.e2e.teams.conftest import App
from tests.e2e.teams.playground import Chat
from tests.http_server import HttpServer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

FILE = "application/vnd.microsoft.teams.file.download.info"
FACT = "The anvil in Ludlow weighs 164 kilograms."
FILES = {
    "anvil.md": f"# The anvil\n\n{FACT}\n".encode(),
    "no-document.pdf": b"MZ\x90\x00 a program that calls itself a document",
}


@pytest.fixture(name="drive")
def make_drive() -> Iterator[str]:
    """Yield the URL of a server that replaces Teams' file storage."""
    with HttpServer(lambda request: (200, {}, FILES[request.target[1:]])) as server:
        yield server.url


def drop_in_chat(chat: Chat, app: App, drive: str, name: str) -> None:
    message = [activity for activity in chat.playground.activities() if activity["type"] == "message"][-1]
    content = {"downloadUrl": f"{drive}/{name}", "uniqueId": name, "fileType": Path(name).suffix[1:]}
    file = {"contentType": FILE, "contentUrl": f"{drive}/{name}", "name": name, "content": content}
    dropped = {**message, "id": str(uuid.uuid4()), "text": "", "attachments": [file]}
    response = httpx.post(f"{app.stack.base_url}/api/messages", json=dropped, timeout=120)
    assert response.status_code == 202, response.text


def test_a_dropped_file_belongs_to_the_conversation_until_it_is_kept(
    app: App, anna: Chat, drive: str
) -> None:
    anna.say("/help")
    eventually(lambda: "/help" in [activity.get("text") for activity in anna.playground.activities()])
    for name in FILES:
        drop_in_chat(anna, app, drive, name)
    anna.see("I cannot read no-document.pdf")
    anna.see("I have read anvil.md")
    anna.say("How many kilograms does the anvil in Ludlow weigh?")
    anna.see(FACT)
    anna.picture("dropped-file")
    assert "anvil.md" not in {one["filename"] for one in documents_of(app.stack, ANNA)}
    anna.say("/keep")
    anna.see("anvil.md is now one of your documents")
    eventually(lambda: "anvil.md" in {one["filename"] for one in documents_of(app.stack, ANNA)})
    listed = {user: {one["filename"] for one in documents_of(app.stack, user)} for user in (ANNA, BEN)}
    assert "anvil.md" in listed[ANNA] - listed[BEN]
    assert "no-document.pdf" not in listed[ANNA] | listed[BEN]
