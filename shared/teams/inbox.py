"""Authenticates the senders of incoming activities and parses the activities. Stores nothing.

Checks run in this order: token, shape, matching service URLs, tenant. Activities without a token are accepted
only on a developer's machine (BOT_LOCAL_ANONYMOUS).
"""

import hashlib
import ipaddress
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import SplitResult

from pydantic import TypeAdapter, ValidationError

from shared.platform.errors import AccessDeniedError, CallerError, NotAuthenticatedError
from shared.platform.settings import Settings
from shared.teams.activities import TEAMS, Account, Received, read_activity
from shared.teams.models import (
    OWN_KEY,
    BotActivity,
    BotAttachment,
    BotConversation,
    BotFeedback,
    BotIgnored,
    BotJoined,
    BotMessage,
    BotSender,
    ButtonValue,
    ConversationKind,
)
from shared.teams.tokens import (
    CLOUDS,
    ChannelToken,
    ChannelTokens,
    address_parts,
    is_loopback,
    is_service,
    origin,
    refuse,
)

_FILE = "application/vnd.microsoft.teams.file.download.info"
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LOCAL_ID = re.compile(r"[A-Za-z0-9._@-]{1,128}")
_LOCALE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}")
_KINDS: dict[str, ConversationKind] = {"personal": "personal", "groupchat": "group", "channel": "channel"}
_THUMBS = {"like": "up", "dislike": "down"}
_MAX_COMMENT_CHARS = 2000
_HINT = "See docs/teams.md on the Agents Playground."
_SUFFIXES = {"image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/tiff": ".tiff"}
_BUTTON: TypeAdapter[ButtonValue] = TypeAdapter(ButtonValue)


class ChannelInbox:
    """Authenticates and parses the activities sent to one bot."""

    def __init__(self, settings: Settings, tokens: ChannelTokens | None) -> None:
        """Create an inbox. `tokens` verifies senders; None if no bot is configured or it has no identity."""
        self._settings = settings
        self._tokens = tokens
        self._hosts = CLOUDS[settings.bot.cloud].hosts

    async def receive(self, authorization: str | None, body: bytes, peer: str | None) -> BotActivity:
        """Authenticate the sender of a request and return the parsed activity.

        Args:
            authorization: the header's value.
            peer: the client's address, used only in local mode without tokens.

        Raises:
            NotAuthenticatedError: the token is missing or wasn't issued by the channel for this bot.
            AccessDeniedError: the sender belongs to another tenant.
            CallerError: the body isn't an activity or has no service URL.
            DependencyError: the Bot Service's keys can't be read.
        """
        if self._tokens is None:
            return self._receive_local(body, peer)
        token = await self._tokens.verify(authorization)
        received = read_activity(body)
        _check_came_from(received, token, self._hosts)
        self._check_tenant(received)
        return as_activity(received, body, is_local=False)

    def _receive_local(self, body: bytes, peer: str | None) -> BotActivity:
        if not self._settings.bot.local_anonymous or self._settings.host.in_azure:
            raise NotAuthenticatedError("No bot is configured.", "Set BOT_APP_ID; see docs/settings.md.")
        if not _is_this_machine(peer):
            raise NotAuthenticatedError("Activities without a token must come from this machine.", _HINT)
        received = read_activity(body)
        if not is_loopback(_address(received)):
            raise NotAuthenticatedError("Without a token, serviceUrl must be on this machine.", _HINT)
        self._check_tenant(received)
        return as_activity(received, body, is_local=True)

    def _check_tenant(self, received: Received) -> None:
        """Raise an error if a Teams user belongs to another tenant. Users of other channels have no tenant
        and are anonymous.
        """
        ours = (self._settings.bot.tenant_id or "").casefold()
        if received.channel_name != TEAMS or not ours:
            return
        tenants: tuple[str | None, ...] = (received.sender_tenant, received.conversation.tenant_id)
        if self._tokens is None:  # The Agents Playground sends a tenant in only one of the two places.
            tenants = tuple(tenant for tenant in tenants if tenant) or ("",)
        if any((tenant or "").casefold() != ours for tenant in tenants):
            raise AccessDeniedError(
                "This bot is only available to its own organisation.",
                "Use an account of that organisation.",
            )


def _address(received: Received) -> SplitResult:
    parts = address_parts(received.service_url)
    if parts is None:
        raise CallerError("Invalid activity: serviceUrl is not an http URL.")
    return parts


def _check_came_from(received: Received, token: ChannelToken, hosts: tuple[str, ...]) -> None:
    """Raise an error unless the service URL and channel of the activity match the sender's verified token.

    Raises:
        CallerError: the service URL is invalid.
        NotAuthenticatedError: the URL differs from the token's or isn't the Bot Service's, or the signing key
            isn't endorsed for this channel.
    """
    claimed, proved = _address(received), address_parts(token.service_url)
    if proved is None or origin(claimed) != origin(proved):
        refuse("other_service_url")
    if not is_service(claimed, hosts):
        refuse("foreign_service_url")
    if token.endorsements and received.channel_name not in token.endorsements:
        refuse("channel_not_endorsed")


def _is_this_machine(peer: str | None) -> bool:
    try:
        return ipaddress.ip_address(peer or "").is_loopback
    except ValueError:
        return False


def as_activity(received: Received, body: bytes, *, is_local: bool) -> BotActivity:
    """Convert a parsed activity to the model for its kind: message, rating, joined member or ignored.

    `is_local`: it comes from this machine, where object ids need not be GUIDs.

    Raises:
        CallerError: a message or rating lacks required fields.
    """
    sender, recipient = received.sender, received.recipient
    if received.type == "conversationUpdate":
        return _joined(received, body, is_local=is_local)
    if received.type not in ("message", "invoke"):
        return BotIgnored(activity_type=received.type)
    if sender is None or recipient is None or received.id is None:
        raise CallerError(f"Invalid activity: {received.type!r} needs id, from and recipient.")
    if sender.id == recipient.id:  # The channel echoed a message of the bot itself.
        return BotIgnored(activity_type=received.type)
    if received.type == "invoke":
        return _feedback(received, received.id, sender, is_local=is_local)
    return _message(received, received.id, is_local=is_local)


def _message(received: Received, activity_id: str, *, is_local: bool) -> BotActivity:
    message = BotMessage(
        activity_id=activity_id,
        conversation=_conversation(received),
        sender=_sender(received, is_local=is_local),
        text=_text(received),
        button=_button(received.value),
        attachments=tuple(_files(received)),
        sent_at=_aware(received.timestamp),
    )
    is_empty = not message.text and message.button is None and not message.attachments
    return BotIgnored(activity_type=received.type) if is_empty else message


def _feedback(received: Received, activity_id: str, sender: Account, *, is_local: bool) -> BotActivity:
    value = received.value if isinstance(received.value, dict) else {}
    if received.name != "message/submitAction" or value.get("actionName") != "feedback":
        return BotIgnored(activity_type=received.type)
    answer = value.get("actionValue")
    fields = answer if isinstance(answer, dict) else {}
    thumb = _THUMBS.get(str(fields.get("reaction")))
    # The Agents Playground omits the message id, so the rating applies to the last answer.
    if thumb is None or not (received.reply_to_id or is_local):
        raise CallerError("A rating needs replyToId and a reaction, like or dislike.")
    return BotFeedback.model_validate(
        {
            "activity_id": activity_id,
            "conversation": _conversation(received),
            "sender": _sender(received, is_local=is_local),
            "message_id": received.reply_to_id or "",
            "thumb": thumb,
            "comment": _comment(fields.get("feedback")),
        }
    )


def _joined(received: Received, body: bytes, *, is_local: bool) -> BotActivity:
    if not received.members_added or received.recipient is None:
        return BotIgnored(activity_type=received.type)
    return BotJoined(
        # Some channels assign ids to messages only. Other activities are identified by a digest of their
        # bytes.
        activity_id=received.id or hashlib.sha256(body).hexdigest()[:32],
        conversation=_conversation(received),
        sender=_sender(received, is_local=is_local),
        is_us=any(member.id == received.recipient.id for member in received.members_added),
    )


def _conversation(received: Received) -> BotConversation:
    conversation, us = received.conversation, received.recipient
    locale = received.locale
    return BotConversation(
        channel=received.channel_name,
        service_url=received.service_url,
        conversation_id=conversation.id,
        kind=_kind(received),
        tenant_id=conversation.tenant_id if received.channel_name == TEAMS else None,
        bot_id=us.id if us else "",
        bot_name=us.name if us else None,
        locale=locale if isinstance(locale, str) and _LOCALE.fullmatch(locale) else None,
    )


def _kind(received: Received) -> ConversationKind:
    """Return the kind of a conversation. Unless Teams reports a personal chat, assume that several people can
    read it.
    """
    conversation = received.conversation
    if conversation.kind is not None:
        return _KINDS.get(conversation.kind.casefold(), "group")
    return "group" if conversation.is_group or received.channel_name == TEAMS else "personal"


def _sender(received: Received, *, is_local: bool) -> BotSender:
    sender = received.sender
    if sender is None:
        return BotSender(channel_user_id=received.conversation.id)
    return BotSender(
        channel_user_id=sender.id,
        object_id=_object_id(received, sender, is_local=is_local),
        tenant_id=received.sender_tenant,
        name=sender.name,
    )


def _object_id(received: Received, sender: Account, *, is_local: bool) -> str | None:
    """Return the sender's Entra object id in the spelling that web tokens use, so that both identify the same
    user; None if there is none.
    """
    object_id = sender.object_id or ""
    if received.channel_name != TEAMS or not (_LOCAL_ID if is_local else _GUID).fullmatch(object_id):
        return None
    return object_id if is_local else object_id.lower()


def _text(received: Received) -> str:
    """Return the message text without mentions of the bot."""
    text = received.text or ""
    for entity in received.entities or ():
        if not isinstance(entity, dict) or entity.get("type") != "mention":
            continue
        mentioned, mention_text = entity.get("mentioned"), entity.get("text")
        is_us = isinstance(mentioned, dict) and mentioned.get("id") == (
            received.recipient.id if received.recipient else None
        )
        if is_us and isinstance(mention_text, str) and mention_text:
            text = text.replace(mention_text, " ", 1)
    return text.strip()


def _button(value: Any) -> ButtonValue | None:
    """Return the value of a clicked button, or None if it belongs to a card of another app."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if not isinstance(value, dict):
        return None
    own = value.get(OWN_KEY, value)
    if not isinstance(own, dict):
        return None
    try:
        return _BUTTON.validate_python({name: own[name] for name in own if name not in ("msteams", "_")})
    except ValidationError:
        return None


def _files(received: Received) -> Iterable[BotAttachment]:
    """Yield the attached files. Attachments without a URL, such as cards and the message's own HTML, are
    skipped.
    """
    for number, attachment in enumerate(received.attachments or (), start=1):
        if attachment.content_type == _FILE:
            content = attachment.content if isinstance(attachment.content, dict) else {}
            address = content.get("downloadUrl")
        else:
            address = attachment.url
        if not isinstance(address, str) or not address or attachment.content_type == "text/html":
            continue
        yield BotAttachment(
            name=attachment.name or _generate_name(received, attachment.content_type, number),
            content_type=attachment.content_type,
            url=address,
            is_hosted=_host(address) == _host(received.service_url) is not None,
        )


def _generate_name(received: Received, content_type: str, number: int) -> str:
    """Return a unique file name for a pasted picture. Its suffix is provisional, because Teams reports only
    `image/*`.

    Names must be unique, because a file with a known name becomes the next version of that document.
    """
    day = f"{received.timestamp:%Y-%m-%d}-" if received.timestamp else ""
    seed = f"{received.conversation.id}\n{received.id}"
    name = f"{day}{hashlib.sha256(seed.encode()).hexdigest()[:8]}-{number}"
    is_picture = content_type.startswith("image/")
    return f"picture-{name}{_SUFFIXES.get(content_type, '.png')}" if is_picture else f"file-{name}"


def _host(address: str) -> str | None:
    parts = address_parts(address)
    return parts.netloc if parts else None


def _comment(feedback: Any) -> str:
    """Return the comment sent with a rating. Depending on the client, it is nested JSON or plain text."""
    if not isinstance(feedback, str):
        return ""
    try:
        fields = json.loads(feedback)
    except (ValueError, RecursionError):
        return feedback[:_MAX_COMMENT_CHARS]
    words = fields.get("feedbackText") if isinstance(fields, dict) else None
    return words[:_MAX_COMMENT_CHARS] if isinstance(words, str) else ""


def _aware(instant: datetime | None) -> datetime | None:
    return instant.replace(tzinfo=UTC) if instant is not None and instant.tzinfo is None else instant
