"""Fixtures for the bot's route, with an inbox that gets its keys from a test server. Test modules import the
fixtures that they use.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from shared.teams.tokens import SigningKeys, connect_bot
from tests.contract.clients.scripted_server import Answer, ScriptedServer
from tests.contract.teams.signing import Messages, bot_services, bot_settings, key_answer, messages


@asynccontextmanager
async def keys_from(
    *answers: Answer, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[tuple[SigningKeys, ScriptedServer]]:
    """Yield signing keys, and the server that publishes them."""
    connection = connect_bot()
    async with ScriptedServer(*answers) as server:
        yield SigningKeys(connection, f"{server.endpoint}/keys", clock), server
        await connection.close()


@pytest.fixture
async def teams_app(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Messages]:
    """Yield the route of a bot with an identity, for messages from Teams and the web chat."""
    async with keys_from(key_answer("msteams", "webchat")) as (keys, _):
        yield messages(monkeypatch, bot_services(keys, bot_settings()))


@pytest.fixture
def local_app(monkeypatch: pytest.MonkeyPatch) -> Messages:
    """Return the route as on a developer's machine: without an identity, and for activities without a
    token.
    """
    settings = bot_settings(bot_app_id=None, bot_tenant_id=None, bot_local_anonymous=True)
    return messages(monkeypatch, bot_services(None, settings))
