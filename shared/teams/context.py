"""Objects shared by all steps of a reply: dependencies, the incoming message and the stored conversation
state.
"""

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

StoreFile = Callable[[BotAttachment, BotConversation, UserContext, str], Awaitable[str]]
"""Stores a dropped file in the thread with the given id and returns its document id.

Raises if the file is not accepted.
"""

_MAX_UPDATES = 8  # Maximum attempts to update a row that concurrent messages also change.


class TeamsServices(IngestionServices, AnsweringServices, Protocol):
    """The clients and stores that the bot needs. `shared.wiring.Services` implements this protocol."""

    directory: GroupDirectory
    bot_outbox: BotOutbox | None
    bot_files: ChannelFiles | None
    bot_turns: BotTurnStore | None


@dataclass(frozen=True)
class ReplyDependencies:
    """The dependencies of reply steps: services, the channel client and the run orchestrations."""

    services: TeamsServices
    outbox: BotOutbox
    turns: BotTurnStore
    orchestrations: Instances
    store_file: StoreFile

    async def find_user(self, conversation: BotConversation, sender: BotSender) -> tuple[UserContext, bool]:
        """Return the user whose permissions apply to the reply, and whether the lookup of their groups
        failed.

        In a group conversation, and for senders without a verified identity, the user is anonymous and reads
        only public documents. A user whose groups are unknown belongs to nothing, not even the organisation,
        and may be a guest, so deployments that refuse guests refuse them.

        Raises:
            NotAuthenticatedError, AccessDeniedError: the sender has no access.
            DependencyError: the sender may be a guest, and guests are refused.
        """
        owner, settings = owner_of(conversation, sender), self.services.settings
        if owner.startswith(NOBODYS):
            return UserContext(user_id=owner), False
        if settings.bot.local_anonymous:  # There is no directory on a developer's machine.
            return plain_user(UserContext(user_id=owner, name=sender.name)), False
        tenant_id = settings.bot.tenant_id or conversation.tenant_id or ""
        try:
            return await user_from_directory(owner, tenant_id, settings, self.services.directory), False
        except DependencyError:
            if settings.identity.guests == "refused":
                raise
            return plain_user(UserContext(user_id=owner)), True


def channel_clients(services: TeamsServices) -> tuple[BotOutbox, BotTurnStore]:
    """Return the clients that send messages and store conversation state.

    Raises:
        ConfigurationError: no bot is configured.
    """
    if services.bot_outbox is None or services.bot_turns is None:
        raise ConfigurationError("No bot is configured.", "Set BOT_APP_ID; see docs/teams.md.")
    return services.bot_outbox, services.bot_turns


@dataclass(frozen=True)
class IncomingMessage:
    """A user's message together with the reply step that is processing it."""

    message: BotMessage
    step: ReplyStep
    deps: ReplyDependencies

    @property
    def conversation(self) -> BotConversation:
        """The conversation that the message was sent in."""
        return self.message.conversation

    @property
    def language(self) -> Language:
        """The language of the bot's fixed texts in this conversation."""
        return language_of(self.conversation)

    @property
    def owner_id(self) -> str:
        """The id under which threads and runs from this message are stored."""
        return owner_of(self.conversation, self.message.sender)

    @property
    def is_from_person(self) -> bool:
        """Whether the owner is an identified member of the organisation rather than a group or an anonymous
        user.
        """
        return not self.owner_id.startswith(NOBODYS)

    async def user(self) -> tuple[UserContext, bool]:
        """Return the user whose permissions apply, and whether the lookup of their groups failed."""
        return await self.deps.find_user(self.conversation, self.message.sender)

    async def turn(self) -> BotTurn | None:
        """Return the stored state of the message owner in this conversation, or None."""
        return await self.deps.turns.get(conversation_key(self.conversation), self.owner_id)

    async def remember(self, change: Callable[[BotTurn], Mapping[str, Any]]) -> BotTurn:
        """Apply `change` to the stored state of the message owner and return the new state. Conflicts are
        retried.
        """
        return await remember(self.conversation, self.owner_id, self.deps.turns, change)

    async def say(self, text: str) -> None:
        """Send a text that isn't an answer to a question, such as a notice."""
        reply_to = self.message.activity_id
        await self.deps.outbox.say(self.conversation, BotReply(text=text), reply_to)

    async def finish(self, texts: Texts, *filled: object) -> ReplyStep:
        """Reply with a fixed text, formatted with `filled`, and return the step that ends the reply."""
        await self.say(texts[self.language].format(*filled))
        return self.step.end


async def remember(
    conversation: BotConversation,
    owner_id: str,
    turns: BotTurnStore,
    change: Callable[[BotTurn], Mapping[str, Any]],
) -> BotTurn:
    """Apply `change` to an owner's stored state and save it. Return the new state. Concurrent changes are
    retried.

    Args:
        change: returns the fields to update for the current state.

    Raises:
        ConflictError: every attempt conflicted.
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
    raise ConflictError(
        "Too many messages arrived in this conversation at once.", "Wait a moment, then try again."
    )


async def cancel_waiting_run(turn: BotTurn | None, deps: ReplyDependencies) -> None:
    """Cancel the run that is waiting for the user's answer to a clarification, if any. Never raises.

    A run that was answered elsewhere or has timed out is not cancelled.
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
        return  # The run has already ended or was erased.
    except GroundworkError as failed:
        get_logger().warning("channel.question_left_open", run_id=run_id, error_type=failed.code)
