"""What a reply in a chat needs of the world beside the services; made at the edge, faked in tests."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from shared.errors import ConfigurationError
from shared.models.bot import BotAttachment, BotConversation, BotSender
from shared.models.identity import UserContext
from shared.ports import BotOutbox, BotTurnStore, OrchestrationStarter
from shared.services import Services

FindUser = Callable[[BotConversation, BotSender], Awaitable[tuple[UserContext, bool]]]
"""Who wrote, and whether their groups could not be looked up. Raises to refuse them."""

StoreFile = Callable[[BotAttachment, BotConversation, UserContext], Awaitable[str]]
"""Makes a dropped file the person's document; its id. Raises what can be said of a file that is not taken."""


class Orchestrations(OrchestrationStarter, Protocol):
    """Those of the app, as an activity reaches them."""

    async def tell(self, instance_id: str, event: str) -> None:
        """Raise an event of no content for one that waits."""

    async def stop(self, instance_id: str) -> None:
        """End one; nothing happens when it has ended or never was."""

    async def is_alive(self, instance_id: str) -> bool:
        """Whether it may still write; yes, where nobody can tell."""


Prepare = Callable[[], Awaitable[None]]
"""Makes what runs write to, if it is not there yet."""


@dataclass(frozen=True)
class ChannelWorld:
    """The services, what is said to channels, and what starts and stops runs."""

    services: Services
    outbox: BotOutbox
    turns: BotTurnStore
    orchestrations: Orchestrations
    find_user: FindUser
    store_file: StoreFile
    prepare: Prepare


def channel_parts(services: Services) -> tuple[BotOutbox, BotTurnStore]:
    """What talks to channels.

    Raises:
        ConfigurationError: there is no bot.
    """
    if services.bot_outbox is None or services.bot_turns is None:
        raise ConfigurationError("There is no bot here.", "Set BOT_APP_ID; see docs/teams.md.")
    return services.bot_outbox, services.bot_turns
