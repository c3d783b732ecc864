"""One message that somebody wrote, with what is remembered of them there. What all replies share."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from shared.access.models import UserContext
from shared.access.security_filter import NOBODYS
from shared.answering.cancelling import cancel_run
from shared.platform.errors import ConfigurationError, ConflictError, GroundworkError, NotFoundError
from shared.platform.instances import OrchestrationStarter
from shared.platform.telemetry import get_logger
from shared.teams.messages import Texts
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
from shared.teams.parsing import conversation_key, language_of, owner_of
from shared.teams.ports import BotOutbox, BotTurnStore
from shared.teams.services import TeamsServices

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

    services: TeamsServices
    outbox: BotOutbox
    turns: BotTurnStore
    orchestrations: Orchestrations
    find_user: FindUser
    store_file: StoreFile
    prepare: Prepare


def channel_parts(
    bot_outbox: BotOutbox | None, bot_turns: BotTurnStore | None
) -> tuple[BotOutbox, BotTurnStore]:
    """What talks to channels.

    Raises:
        ConfigurationError: there is no bot.
    """
    if bot_outbox is None or bot_turns is None:
        raise ConfigurationError("There is no bot here.", "Set BOT_APP_ID; see docs/teams.md.")
    return bot_outbox, bot_turns


Change = Callable[[BotTurn], Mapping[str, Any]]
"""Fields of a turn as it is, and what they become."""

_TRIES = 8  # of a write that somebody else's came before


@dataclass(frozen=True)
class Visit:
    """A message, the step that it is at, and the world."""

    message: BotMessage
    step: ReplyStep
    world: ChannelWorld

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
        """Whose thread and runs these are."""
        return owner_of(self.conversation, self.message.sender)

    @property
    def is_of_person(self) -> bool:
        """Whether the owner is a person whom the organisation knows."""
        return not self.owner_id.startswith(NOBODYS)

    @property
    def end(self) -> ReplyStep:
        """There is nothing left to do."""
        return ReplyStep(reply_key=self.step.reply_key, day=self.step.day, kind="end")

    async def turn(self) -> BotTurn | None:
        """What is remembered here of whoever wrote."""
        return await self.world.turns.get(conversation_key(self.conversation), self.owner_id)

    async def say(self, texts: Texts, *filled: object) -> ReplyStep:
        """Say a text of ours, and be done."""
        await self.tell(texts[self.language].format(*filled))
        return self.end

    async def tell(self, text: str) -> None:
        """Say something that is no answer."""
        reply_to = self.message.activity_id
        await self.world.outbox.say(self.conversation, BotReply(text=text), reply_to)


async def remember(
    conversation: BotConversation, owner_id: str, world: ChannelWorld, change: Change
) -> BotTurn:
    """Change what is remembered of an owner as it is, again when somebody else's change came before.

    Raises:
        ConflictError: others changed it all the time.
    """
    key = conversation_key(conversation)
    for _ in range(_TRIES):
        turn = await world.turns.get(key, owner_id)
        now = datetime.now(UTC)
        known = turn or BotTurn(conversation=conversation, owner_id=owner_id, updated_at=now)
        changes = {**change(known), "conversation": conversation, "updated_at": now}
        changed = known.model_copy(update=changes)
        try:
            return await world.turns.put(key, changed)
        except ConflictError:
            continue
    raise ConflictError("Too much at once in this conversation.", "Wait a moment, then try again.")


async def leave_question(turn: BotTurn | None, world: ChannelWorld) -> None:
    """End the run that waits for an answer, if one does: nobody means to give it any more. Never fails.

    One that was answered elsewhere meanwhile, or goes on by itself, waits no more and is left alone.
    """
    run_id = turn.waiting_run_id if turn else None
    if run_id is None:
        return
    try:
        record = await world.services.runs.get(run_id)
        if record is None or record.status != "waiting":
            return
        await cancel_run(run_id, world.services)
        await world.orchestrations.stop(run_id)
    except (ConflictError, NotFoundError):
        return  # it has ended, or was erased
    except GroundworkError as failed:
        get_logger().warning("channel.question_left_open", run_id=run_id, error_type=failed.code)
