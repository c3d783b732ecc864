"""Fixtures for the outbox as on a developer's machine, and a stand-in for the channel. Tests import the
fixtures that they use.
"""

from collections.abc import AsyncIterator

import pytest

from shared.teams.outbox import BotOutbox
from tests.contract.teams.connector import Connector
from tests.contract.teams.signing import bot_settings


async def no_token() -> str:
    """Fail the test, because the bot needs no token on a developer's machine."""
    raise AssertionError("no token leaves this machine")


@pytest.fixture
async def connector() -> AsyncIterator[Connector]:
    async with Connector() as server:
        yield server


@pytest.fixture
async def outbox() -> AsyncIterator[BotOutbox]:
    settings = bot_settings(bot_app_id=None, bot_tenant_id=None, bot_local_anonymous=True)
    bot_outbox = BotOutbox(settings, no_token, stream_interval_s=0.02)
    yield bot_outbox
    await bot_outbox.close()
