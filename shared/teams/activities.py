"""Pydantic models and parsing of Bot Framework activities, the JSON that channels send. Pure.

Unused fields are ignored. A field that is too long or has the wrong type is the sender's error.

Source: Bot Framework Activity schema 3.1.
"""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from shared.platform.errors import CallerError
from shared.platform.http_client import Wire


class ActivityParty(BaseModel):
    """A user or conversation in an activity, identified by the id that the channel assigned."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    id: str = Field(
        min_length=1,
        max_length=1024,
        description="Id that the channel assigned to the user or conversation.",
    )


class ChannelActivity(BaseModel):
    """Required fields of a Bot Framework activity, as documented in the OpenAPI description.

    Attributes:
        type: `message`, `invoke`, `conversationUpdate` …
        id: activity id; repeated for a redelivery.
        channel_id: `msteams`, `webchat` …
        service_url: where replies are sent; its host must match the token.
        conversation: the conversation it belongs to.
    """

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    type: str = Field(min_length=1, max_length=1024)
    id: str | None = Field(default=None, min_length=1, max_length=1024)
    channel_id: str = Field(
        alias="channelId",
        min_length=1,
        max_length=1024,
        description="Channel that sent the activity, such as `msteams`.",
    )
    service_url: str = Field(
        alias="serviceUrl",
        min_length=1,
        max_length=1024,
        description="URL of the channel service to which replies are sent.",
    )
    conversation: ActivityParty


class ActivityAnswer(BaseModel):
    """Response body for an invoke activity. Its fields depend on the channel."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)


TEAMS = "msteams"


def _plain(text: str) -> str:
    if not text.isprintable():
        raise ValueError("the text contains invisible characters")
    return text


# Teams ids have up to about 250 characters (unmeasured). Storage keys contain only digests of ids, so long
# ids are harmless.
_Id = Annotated[str, StringConstraints(min_length=1, max_length=1024), AfterValidator(_plain)]
_Name = Annotated[str, StringConstraints(max_length=1024)]


class Account(Wire):
    """The sender, recipient or member of a conversation, as identified by the channel."""

    id: _Id
    name: _Name | None = None
    object_id: _Name | None = Field(default=None, alias="aadObjectId")


class _Conversation(Wire):
    id: _Id
    kind: _Name | None = Field(default=None, alias="conversationType")
    is_group: bool | None = Field(default=None, alias="isGroup")
    tenant_id: _Name | None = Field(default=None, alias="tenantId")


class _Attachment(Wire):
    content_type: _Name = Field(alias="contentType")
    url: Annotated[str, StringConstraints(max_length=250_000)] | None = Field(
        default=None, alias="contentUrl"
    )
    content: Any = None
    name: _Name | None = None


class Received(Wire):
    """A parsed activity. Its sender has not been authenticated yet."""

    type: _Id
    id: _Id | None = None
    channel: _Id = Field(alias="channelId")
    service_url: _Id = Field(alias="serviceUrl")
    sender: Account | None = Field(default=None, alias="from")
    recipient: Account | None = None
    conversation: _Conversation
    text: str | None = None
    text_format: _Name | None = Field(default=None, alias="textFormat")
    value: Any = None
    name: _Name | None = None
    reply_to_id: _Id | None = Field(default=None, alias="replyToId")
    locale: Any = None
    timestamp: datetime | None = None
    channel_data: Any = Field(default=None, alias="channelData")
    entities: Annotated[tuple[Any, ...], Field(max_length=500)] | None = None
    attachments: Annotated[tuple[_Attachment, ...], Field(max_length=50)] | None = None
    members_added: Annotated[tuple[Account, ...], Field(max_length=1000)] | None = Field(
        default=None, alias="membersAdded"
    )

    @property
    def channel_name(self) -> str:
        """The channel name without a product suffix: `msteams` for `msteams:COPILOT`."""
        return self.channel.partition(":")[0]

    @property
    def sender_tenant(self) -> str | None:
        """The Entra tenant id that Teams reports for the sender; None for other channels."""
        tenant = self.channel_data.get("tenant") if isinstance(self.channel_data, dict) else None
        tenant_id = tenant.get("id") if isinstance(tenant, dict) else None
        return tenant_id if isinstance(tenant_id, str) and self.channel_name == TEAMS else None


def read_activity(body: bytes) -> Received:
    """Parse a request body as a Bot Framework activity.

    Raises:
        CallerError: the body isn't JSON or not an activity. The error names the first invalid field, not its
            value.
    """
    try:
        return Received.model_validate_json(body)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_input=False, include_context=False)[0]
        if first["type"] == "json_invalid":
            raise CallerError("The body is not valid JSON.", "Send an activity.") from None
        place = ".".join(str(part) for part in first["loc"]) or "body"
        raise CallerError(f"Invalid activity: {place} is missing or invalid.") from None
