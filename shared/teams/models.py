"""Models of incoming and outgoing messages, and of the state stored for replies. Pure.

Each reply is a chain of `ReplyStep`s, passed from one `reply_in_channel` activity to the next.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from shared.platform.models import Model

OWN_KEY = "groundwork"  # separates our button value from the values that the channel adds
ConversationKind = Literal["personal", "group", "channel"]


class BotConversation(Model):
    """A conversation, with all the addresses and ids needed to send messages to it later.

    Attributes:
        channel: `msteams`, `webchat`, `directline`, `emulator` …
        service_url: where messages are sent; verified against the token on receipt.
        conversation_id: assigned by the channel; in a Teams channel it includes the reply chain.
        tenant_id: Entra tenant, if the channel reports one.
        bot_id, bot_name: the bot's identity in the channel.
        locale: of the writer, such as `de-DE`.
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
    """The sender of a message. `object_id` is the Entra object id, which only Teams reports and only for
    members of a tenant.
    """

    channel_user_id: str
    object_id: str | None = None
    tenant_id: str | None = None
    name: str | None = None


class BotAttachment(Model):
    """A file that a user attached to a chat message.

    Attributes:
        url: download URL, used only by the downloader with its list of hosts.
        is_hosted: whether the channel stores it and requires our token.
    """

    name: str
    content_type: str
    url: str
    is_hosted: bool = False


class ChosenOption(Model):
    """The value of a clicked button that selects an option of a clarification."""

    kind: Literal["choose"] = "choose"
    run_id: str
    number: int


class ButtonCommand(Model):
    """The value of a clicked button that runs a command, such as `/sources`."""

    kind: Literal["command"] = "command"
    command: str


ButtonValue = Annotated[ChosenOption | ButtonCommand, Field(discriminator="kind")]


class BotMessage(Model):
    """A user's message or button click. `text` excludes mentions of the bot."""

    kind: Literal["message"] = "message"
    activity_id: str
    conversation: BotConversation
    sender: BotSender
    text: str = ""
    button: ButtonValue | None = None
    attachments: tuple[BotAttachment, ...] = ()
    sent_at: datetime | None = None


class BotFeedback(Model):
    """A user's rating of a bot message. `message_id` is the channel's id of that message; empty means the
    last answer.
    """

    kind: Literal["feedback"] = "feedback"
    activity_id: str
    conversation: BotConversation
    sender: BotSender
    message_id: str
    thumb: Literal["up", "down"]
    comment: str = ""


class BotJoined(Model):
    """A notification that a member joined a conversation. If `is_us`, the member is the bot, which then sends
    its help text.
    """

    kind: Literal["joined"] = "joined"
    activity_id: str
    conversation: BotConversation
    sender: BotSender
    is_us: bool


class BotIgnored(Model):
    """A valid activity that the bot ignores, such as a typing indicator."""

    kind: Literal["ignored"] = "ignored"
    activity_type: str


BotActivity = Annotated[BotMessage | BotFeedback | BotJoined | BotIgnored, Field(discriminator="kind")]


class ShownCitation(Model):
    """A numbered source displayed below a message, referenced by `[n]` in the text.

    `url` is an absolute URL of our page, which checks permissions; it is never signed.
    """

    n: int
    name: str
    abstract: str
    url: str


class ShownFigure(Model):
    """A picture displayed below a message. `image_url` is signed and valid for at least an hour; `page_url`
    links to the document page in this app.

    `caption` is shown below it; `alt` is the alternative text (empty = use the caption).
    """

    caption: str
    alt: str = ""
    image_url: str
    page_url: str


class ShownTable(Model):
    """A table of an answer. Every row has as many cells as `header`."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class ShownButton(Model):
    """A button displayed below a message, or a numbered line with `title` in channels without buttons."""

    title: str
    value: ButtonValue


class BotReply(Model):
    """An outgoing message, independent of the channel.

    Attributes:
        text: Markdown as supported by chat clients: no pictures or tables.
        badge: a word below the first part of the text; empty = none.
        can_be_rated: show rating buttons.
        is_generated: mark the message as written by a model.
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
    """The stored state of one owner in one conversation: a table row.

    Attributes:
        owner_id: owner of the runs and the thread: the person, or the conversation if several people read it.
        thread_id: thread of the next question; None = create one.
        last_run_id: run whose sources `/sources` shows.
        waiting_run_id: run with an open clarification.
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
Command = Literal["new", "sources", "keep", "forget", "help"]
StepKind = Literal[
    "take", "store_files", "look_at_files", "keep_file", "follow", "expire", "apologise", "end"
]


class ReplyStep(Model):
    """The next step of a reply: input and output of each `reply_in_channel` activity. It contains no message
    text.

    Attributes:
        reply_key: key of the message; also the id of the run that answers it.
        folder: where it is stored.
        run_id: the run being followed.
        ask_step: the run's step whose clarification was answered last; 0 = none.
        after: number of the run's events that were processed.
        part: counted from 0; only the first can be a streamed message.
        doc_ids: documents of dropped files that aren't ready yet.
        attempt: number of failed attempts of this step.
        error: code of a permanent failure, which the next step reports.
        delay_s: seconds to wait before the step.
    """

    reply_key: str
    folder: str
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
        """The step that ends the reply."""
        return ReplyStep(reply_key=self.reply_key, folder=self.folder, kind="end")


class TakenActivity(Model):
    """An activity stored until its reply has been sent. Its text is then deleted, and the rest remains to
    detect duplicates.

    Attributes:
        is_done: it was answered and its text deleted.
    """

    said: BotMessage | BotJoined | None = None
    is_done: bool = False


class ReplyPlace(Model):
    """The destination and owner of a run's answer, stored alongside the files of the run.

    Attributes:
        reply_to: the channel's id of the message being answered.
        alone: whether the person's groups could not be looked up.
    """

    conversation: BotConversation
    owner_id: str
    reply_to: str | None = None
    alone: bool = False


class SentReply(Model):
    """A record of a sent reply. `message_id` is the id that the channel assigned."""

    message_id: str


class ReplyClaim(Model):
    """A claim on the reply to an answered clarification, so that only one of several clicks continues it."""

    reply_key: str


def apology(step: ReplyStep, code: str) -> ReplyStep:
    """Return the step that apologises to the user for a failure, or the final step if the apology itself
    failed.

    Args:
        code: of the error, as in docs/events-and-errors.md.
    """
    kind = "end" if step.kind == "apologise" else "apologise"
    return step.model_copy(update={"kind": kind, "attempt": 0, "delay_s": 0.0, "error": code})
