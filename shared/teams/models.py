"""What channels send us, what we send them, and what is stored of a reply. Pure.

Every reply is a chain of `ReplyStep`s, from one activity of `reply_in_channel` to the next.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from shared.platform.models import Model

OWN_KEY = "groundwork"  # of our button's value, in a card that also holds values of the channel
ConversationKind = Literal["personal", "group", "channel"]


class BotConversation(Model):
    """A conversation: all that is needed to write there again at any later time.

    Attributes:
        channel: `msteams`, `webchat`, `directline`, `emulator` …
        service_url: where the channel takes messages; checked against its token when it came in.
        conversation_id: of the channel; in a channel of Teams it names the thread of replies, too.
        tenant_id: the Entra tenant, if the channel tells one.
        bot_id, bot_name: what the channel calls us.
        locale: of the person who wrote, such as `de-DE`.
    """

    channel: str
    service_url: str
    conversation_id: str
    kind: ConversationKind = "personal"
    tenant_id: str | None = None
    bot_id: str
    bot_name: str | None = None
    locale: str | None = None


class BotSender(Model):
    """The sender. `object_id` is the Entra object id; only Teams gives it, for people of a tenant."""

    channel_user_id: str
    object_id: str | None = None
    tenant_id: str | None = None
    name: str | None = None


class BotAttachment(Model):
    """A file that a user dropped into a chat.

    Attributes:
        url: where its bytes are; used only by the downloader, which has a list of hosts.
        is_hosted: the channel stores it, and gives it only to us.
    """

    name: str
    content_type: str
    url: str
    is_hosted: bool = False


class ChosenOption(Model):
    """The button of an option of a clarification."""

    kind: Literal["choose"] = "choose"
    run_id: str
    number: int


class ButtonCommand(Model):
    """A button that stands for a command, such as `/sources`."""

    kind: Literal["command"] = "command"
    command: str


ButtonValue = Annotated[ChosenOption | ButtonCommand, Field(discriminator="kind")]


class BotMessage(Model):
    """A message that a user wrote, or a click. `text` is without mentions of us."""

    kind: Literal["message"] = "message"
    activity_id: str
    conversation: BotConversation
    sender: BotSender
    text: str = ""
    button: ButtonValue | None = None
    attachments: tuple[BotAttachment, ...] = ()
    sent_at: datetime | None = None


class BotFeedback(Model):
    """A thumb on one of our messages. `message_id` is the channel's id of it; empty = the last one."""

    kind: Literal["feedback"] = "feedback"
    activity_id: str
    conversation: BotConversation
    sender: BotSender
    message_id: str
    thumb: Literal["up", "down"]
    comment: str = ""


class BotJoined(Model):
    """Someone was added to a conversation. `is_us`: it was the bot, which says what can be asked."""

    kind: Literal["joined"] = "joined"
    activity_id: str
    conversation: BotConversation
    sender: BotSender
    is_us: bool


class BotIgnored(Model):
    """A valid activity that asks nothing of us, such as a typing indicator."""

    kind: Literal["ignored"] = "ignored"
    activity_type: str


BotActivity = Annotated[BotMessage | BotFeedback | BotJoined | BotIgnored, Field(discriminator="kind")]


class ShownCitation(Model):
    """A numbered source under a message; `[n]` stands in its text.

    `url` is absolute and leads to our own page, which asks who reads; never a signed address.
    """

    n: int
    name: str
    abstract: str
    url: str


class ShownFigure(Model):
    """A picture under a message. `image_url` is signed and good for an hour at least; `page_url` is ours.

    `caption` stands below it; `alt` tells those who do not see it what it shows (empty: the caption does).
    """

    caption: str
    alt: str = ""
    image_url: str
    page_url: str


class ShownTable(Model):
    """A table of an answer. All rows have as many cells as `header`."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class ShownButton(Model):
    """A button under a message. A channel without buttons gets `title` as a numbered line."""

    title: str
    value: ButtonValue


class BotReply(Model):
    """A message of ours, for any channel.

    Attributes:
        text: Markdown that chat clients show: no pictures, no tables.
        badge: a word below the first part of the text; empty = none.
        can_be_rated: show thumbs under it.
        is_generated: show that a model wrote it.
    """

    text: str
    badge: str = ""
    citations: tuple[ShownCitation, ...] = ()
    figures: tuple[ShownFigure, ...] = ()
    tables: tuple[ShownTable, ...] = ()
    buttons: tuple[ShownButton, ...] = ()
    can_be_rated: bool = False
    is_generated: bool = False


class BotTurn(Model):
    """The state of one owner in one conversation; a row of a table.

    Attributes:
        owner_id: whose runs and thread these are: the person's id, or the conversation's own where several
            people read along.
        thread_id: of the next question; None = it begins a new one.
        last_run_id: whose sources `/sources` shows.
        waiting_run_id: the run that asked the person something.
        revision: changes with every write; None before the first.
    """

    conversation: BotConversation
    owner_id: str
    thread_id: str | None = None
    last_run_id: str | None = None
    waiting_run_id: str | None = None
    updated_at: datetime
    revision: str | None = None


InvokeBody = dict[str, Any]
"""The body of the response to an invoke activity."""

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

    @property
    def end(self) -> "ReplyStep":
        """The last step: nothing is left to do."""
        return ReplyStep(reply_key=self.reply_key, day=self.day, kind="end")


class TakenActivity(Model):
    """An activity, stored until it is answered; afterwards without its words.

    Attributes:
        is_done: it was answered, and its words were removed.
    """

    said: BotMessage | BotJoined | None = None
    is_done: bool = False


class ReplyPlace(Model):
    """Where a run is answered, and its owner; stored as long as the run's files.

    Attributes:
        reply_to: the channel's id of the message that is answered.
        alone: the person's groups could not be looked up.
    """

    conversation: BotConversation
    owner_id: str
    reply_to: str | None = None
    alone: bool = False


class SentReply(Model):
    """A reply that was sent. `message_id`: the channel's id of it."""

    message_id: str


class ReplyClaim(Model):
    """The reply that shows what follows an answered clarification: the first to claim it."""

    reply_key: str


def sorry(step: ReplyStep, code: str) -> ReplyStep:
    """The step that apologises for a failure; after a failed apology there is none.

    Args:
        code: of the error, as in docs/events-and-errors.md.
    """
    kind = "end" if step.kind == "apologise" else "apologise"
    return step.model_copy(update={"kind": kind, "attempt": 0, "delay_s": 0.0, "error": code})
