"""What every step of a reply shares: its dependencies, the incoming message and what is remembered."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from shared.access.admission import plain_user
from shared.access.directory import GroupDirectory
from shared.access.identity import user_from_directory
from shared.access.models import UserContext
from shared.access.security_filter import NOBODYS
from shared.answering.run_end import cancel_run
from shared.answering.services import AnsweringServices
from shared.ingestion.services import IngestionServices
from shared.platform.errors import (
    ConfigurationError,
    ConflictError,
    DependencyError,
    GroundworkError,
    NotFoundError,
)
from shared.platform.instances import Instances
from shared.platform.telemetry import get_logger
from shared.teams.files import ChannelFiles
from shared.teams.messages import Texts, language_of
from shared.teams.models import (
    BotAttachment,
    BotConversation,
    BotMessage,
    BotReply,
    BotSender,
    BotTurn,
    Language,
    ReplyStep,
)
from shared.teams.outbox import BotOutbox
from shared.teams.parsing import conversation_key, owner_of
from shared.teams.store import BotTurnStore

StoreFile = Callable[[BotAttachment, BotConversation, UserContext], Awaitable[str]]
"""Stores a dropped file as the user's document and returns its id. Raises if the file is not accepted."""

_MAX_UPDATES = 8  # of one turn, when others write it at the same time


class TeamsServices(IngestionServices, AnsweringServices, Protocol):
    """The clients and stores that `shared.teams` uses, a part of `shared.wiring.Services`."""

    directory: GroupDirectory
    bot_outbox: BotOutbox | None
    bot_files: ChannelFiles | None
    bot_turns: BotTurnStore | None


@dataclass(frozen=True)
class ReplyDependencies:
    """What the steps of a reply use: the services, the channel, and the orchestrations of runs."""

    services: TeamsServices
    outbox: BotOutbox
    turns: BotTurnStore
    orchestrations: Instances
    store_file: StoreFile

    async def find_user(self, conversation: BotConversation, sender: BotSender) -> tuple[UserContext, bool]:
        """The user as whom a message is answered, and whether their groups could not be looked up.

        In a group, and for a sender for whom no channel vouches, it is a user of no known name, who reads
        what everybody may read. A user without groups belongs to nothing, not even to the organisation: it is
        not known either whether they are a guest. So a deployment that refuses guests refuses them.

        Raises:
            NotAuthenticatedError, AccessDeniedError: the sender has no access.
            DependencyError: they may be a guest, and guests are refused.
        """
        owner, settings = owner_of(conversation, sender), self.services.settings
        if owner.startswith(NOBODYS):
            return UserContext(user_id=owner), False
        if settings.bot.local_anonymous:  # there is no directory on a developer's machine
            return plain_user(UserContext(user_id=owner, name=sender.name)), False
        tenant_id = settings.bot.tenant_id or conversation.tenant_id or ""
        try:
            return await user_from_directory(owner, tenant_id, settings, self.services.directory), False
        except DependencyError:
            if settings.identity.guests == "refused":
                raise
            return plain_user(UserContext(user_id=owner)), True


def channel_clients(services: TeamsServices) -> tuple[BotOutbox, BotTurnStore]:
    """The outbox and the turns.

    Raises:
        ConfigurationError: there is no bot.
    """
    if services.bot_outbox is None or services.bot_turns is None:
        raise ConfigurationError("No bot is configured.", "Set BOT_APP_ID; see docs/teams.md.")
    return services.bot_outbox, services.bot_turns


@dataclass(frozen=True)
class IncomingMessage:
    """A message that a user wrote, and the step of its reply."""

    message: BotMessage
    step: ReplyStep
    deps: ReplyDependencies

    @property
    def conversation(self) -> BotConversation:
        """Where it was written."""
        return self.message.conversation

    @property
    def language(self) -> Language:
        """Of fixed texts."""
        return language_of(self.conversation)

    @property
    def owner_id(self) -> str:
        """Owner of the thread and the runs."""
        return owner_of(self.conversation, self.message.sender)

    @property
    def is_from_person(self) -> bool:
        """Whether the owner is a person whom the organisation knows."""
        return not self.owner_id.startswith(NOBODYS)

    async def user(self) -> tuple[UserContext, bool]:
        """As `ReplyDependencies.find_user`."""
        return await self.deps.find_user(self.conversation, self.message.sender)

    async def turn(self) -> BotTurn | None:
        """What is remembered of the sender in this conversation."""
        return await self.deps.turns.get(conversation_key(self.conversation), self.owner_id)

    async def remember(self, change: Callable[[BotTurn], Mapping[str, Any]]) -> BotTurn:
        """As the function of the same name, for the owner of this message."""
        return await remember(self.conversation, self.owner_id, self.deps.turns, change)

    async def say(self, text: str) -> None:
        """Send a text that is not an answer."""
        reply_to = self.message.activity_id
        await self.deps.outbox.say(self.conversation, BotReply(text=text), reply_to)

    async def finish(self, texts: Texts, *filled: object) -> ReplyStep:
        """Send a fixed text as the whole reply."""
        await self.say(texts[self.language].format(*filled))
        return self.step.end


async def remember(
    conversation: BotConversation,
    owner_id: str,
    turns: BotTurnStore,
    change: Callable[[BotTurn], Mapping[str, Any]],
) -> BotTurn:
    """Update the turn of an owner, again if another update came first.

    Args:
        change: the fields to update, from the turn as it is.

    Raises:
        ConflictError: others updated it each time.
    """
    key = conversation_key(conversation)
    for _ in range(_MAX_UPDATES):
        now = datetime.now(UTC)
        turn = await turns.get(key, owner_id) or BotTurn(
            conversation=conversation, owner_id=owner_id, updated_at=now
        )
        update = {**change(turn), "conversation": conversation, "updated_at": now}
        try:
            return await turns.put(key, turn.model_copy(update=update))
        except ConflictError:
            continue
    raise ConflictError("Too many messages at once in this conversation.", "Wait a moment, then try again.")


async def cancel_waiting_run(turn: BotTurn | None, deps: ReplyDependencies) -> None:
    """Cancel the run that waits for an answer, if there is one. Never fails.

    A run that was answered elsewhere meanwhile, or timed out, waits no more and is left alone.
    """
    run_id = turn.waiting_run_id if turn else None
    if run_id is None:
        return
    try:
        record = await deps.services.runs.get(run_id)
        if record is None or record.status != "waiting":
            return
        await cancel_run(run_id, deps.services)
        await deps.orchestrations.stop(run_id)
    except (ConflictError, NotFoundError):
        return  # it has ended, or was erased
    except GroundworkError as failed:
        get_logger().warning("channel.question_left_open", run_id=run_id, error_type=failed.code)
