"""A conversation in a chat channel, step by step: what the app works through to say something there."""

from typing import Literal

from shared.models.base import Model
from shared.models.bot import BotConversation, BotJoined, BotMessage

Language = Literal["de", "en"]
Command = Literal["new", "sources", "forget", "help"]
StepKind = Literal["take", "store_files", "look_at_files", "follow", "expire", "apologise", "end"]


class ReplyStep(Model):
    """The next step of a reply: in and out of each activity of `reply_in_channel`. Names no content.

    Attributes:
        reply_key: of what was written; also the id of the run that answers it, if it is a question.
        day: when it came, YYYY-MM-DD; names the folder where it is kept.
        run_id: the run that is followed.
        ask_step: the step of the run whose question was answered last; 0 = none asked.
        after: how many events of the run need not be looked at again.
        part: counted from 0; only the first may be a message that grows.
        doc_ids: documents of files that were dropped, until they can be read.
        attempt: how often this very step has failed so far.
        error: the code of what cannot be mended; the next step says so.
        delay_s: seconds to wait before it.
    """

    reply_key: str
    day: str
    kind: StepKind = "take"
    run_id: str = ""
    ask_step: int = 0
    after: int = 0
    part: int = 0
    doc_ids: tuple[str, ...] = ()
    attempt: int = 0
    error: str = ""
    delay_s: float = 0.0


class TakenActivity(Model):
    """What somebody wrote, kept until it is answered; then without its words.

    Attributes:
        is_done: it was answered; nothing of it is left but that.
    """

    said: BotMessage | BotJoined | None = None
    is_done: bool = False


class ReplyPlace(Model):
    """Where a run is answered, and whose it is; kept as long as the run's working memory.

    Attributes:
        reply_to: the channel's id of the message that is answered.
        alone: the person's groups could not be looked up.
    """

    conversation: BotConversation
    owner_id: str
    reply_to: str | None = None
    alone: bool = False


class SentReply(Model):
    """A reply that went out whole. `message_id`: the channel's id of it."""

    message_id: str


class ReplyClaim(Model):
    """Which reply tells what a run says after one of its questions was answered: the first to ask for it."""

    reply_key: str
