"""An activity of a chat channel as the API's description shows it; `shared.clients.bot_wire` reads it."""

from pydantic import BaseModel, ConfigDict, Field


class ActivityParty(BaseModel):
    """Somebody, or a conversation, by the channel's id."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    id: str = Field(min_length=1, max_length=1024)


class ChannelActivity(BaseModel):
    """An activity of the Bot Framework protocol. What it says beside is looked at where it is used.

    Attributes:
        type: `message`, `invoke`, `conversationUpdate` …
        id: of the activity; the same id is the same activity.
        channel_id: `msteams`, `webchat` …
        service_url: where the channel takes messages; its host must be that of the token.
        conversation: where it was said.
    """

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    type: str = Field(min_length=1, max_length=1024)
    id: str | None = Field(default=None, min_length=1, max_length=1024)
    channel_id: str = Field(alias="channelId", min_length=1, max_length=1024)
    service_url: str = Field(alias="serviceUrl", min_length=1, max_length=1024)
    conversation: ActivityParty


class ActivityAnswer(BaseModel):
    """What an activity is answered with that waits for an answer, as its channel wants it."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)
