"""One message that somebody wrote, with what is remembered of them there. What all replies share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shared.agents.cancelling import cancel_run
from shared.agents.channel.world import ChannelWorld
from shared.core.channel_texts import Texts
from shared.core.channel_words import conversation_key, language_of, owner_of
from shared.core.security_filter import NOBODYS
from shared.errors import ConflictError, GroundworkError, NotFoundError
from shared.models.bot import BotConversation, BotMessage, BotReply, BotTurn
from shared.models.channel import Language, ReplyStep
from shared.telemetry import get_logger

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
