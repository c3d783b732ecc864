"""Settings of chat channels such as Teams: a base of `Settings`. Unset = there is no bot."""

import re
from typing import Literal, Self

from pydantic import Field, model_validator

from shared.setting_checks import check_public_address
from shared.settings_base import EnvironmentModel

_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HOST = re.compile(r"\.?[a-z0-9-]+(\.[a-z0-9-]+)*(:\d{1,5})?")


class BotSettings(EnvironmentModel):
    """Who we are to the Bot Service, and what is taken from it."""

    bot_app_id: str | None = Field(
        default=None,
        description="Client id of the identity of the Azure Bot; unset = POST /api/messages answers 401.",
        examples=["00000000-0000-0000-0000-000000000000"],
    )
    bot_tenant_id: str | None = Field(
        default=None,
        description="Entra tenant of the bot; people of other tenants are refused. Needed with BOT_APP_ID.",
        examples=["72f988bf-86f1-41af-91ab-2d7cd011db47"],
    )
    bot_cloud: Literal["public", "usgov"] = Field(
        default="public",
        description="Microsoft cloud of the bot; usgov = Azure Government, with Teams GCC High or DoD. Set "
        "BOT_ATTACHMENT_HOSTS and GRAPH_ENDPOINT with it.",
        examples=["usgov"],
    )
    bot_local_anonymous: bool = Field(
        default=False,
        description="Believe activities without a token that come from this machine, such as the Agents "
        "Playground's; not with BOT_APP_ID, refused in Azure.",
    )
    bot_attachment_hosts: str = Field(
        default=".sharepoint.com,smba.trafficmanager.net",
        description="Hosts, comma separated, from which files dropped into a chat are fetched; `.NAME` = any "
        "host below it. Loopback counts with BOT_LOCAL_ANONYMOUS alone.",
        examples=["contoso-my.sharepoint.com,smba.trafficmanager.net"],
    )
    bot_stream_seconds: float = Field(
        default=100,  # Teams ends a streamed message after 2 minutes
        gt=0,
        le=110,
        description="Most seconds for a message that grows in a chat; a longer answer comes anew.",
    )
    public_url: str | None = Field(
        default=None,
        description="Address of the app as people's browsers reach it, for links in chats; unset = "
        "https://WEBSITE_HOSTNAME.",
        examples=["https://groundwork.contoso.com"],
    )
    website_hostname: str | None = Field(default=None, description="Set by Azure; the app's own host name.")

    @property
    def public_address(self) -> str | None:
        """Where people's browsers reach the app, without a slash at the end; None = nobody has said."""
        if self.public_url:
            return self.public_url.rstrip("/")
        return f"https://{self.website_hostname}" if self.website_hostname else None

    @property
    def attachment_hosts(self) -> tuple[str, ...]:
        """BOT_ATTACHMENT_HOSTS, one by one, in lower case."""
        parts = self.bot_attachment_hosts.split(",")
        return tuple(host for part in parts if (host := part.strip().casefold()))

    @model_validator(mode="after")
    def _check_bot(self) -> Self:
        _check_identity(self.bot_app_id, self.bot_tenant_id)
        if self.bot_app_id and self.bot_local_anonymous:
            raise ValueError(
                "BOT_LOCAL_ANONYMOUS and BOT_APP_ID are both set: a bot with an identity takes nothing "
                "without a token. Remove one."
            )
        if any(not _HOST.fullmatch(host) for host in self.attachment_hosts):
            raise ValueError(
                "BOT_ATTACHMENT_HOSTS holds something else than names of hosts. "
                "Example: BOT_ATTACHMENT_HOSTS=.sharepoint.com,smba.trafficmanager.net"
            )
        if self.public_url:
            check_public_address(self.public_url)
        return self


def _check_identity(app_id: str | None, tenant_id: str | None) -> None:
    if app_id and not tenant_id:
        raise ValueError(
            "BOT_TENANT_ID is missing: whose people the bot of BOT_APP_ID answers. "
            "Example: BOT_TENANT_ID=72f988bf-86f1-41af-91ab-2d7cd011db47"
        )
    for name, value in (("BOT_APP_ID", app_id), ("BOT_TENANT_ID", tenant_id)):
        if value and not _GUID.fullmatch(value):
            raise ValueError(
                f"{name} is no id of Entra ID. Example: {name}=00000000-0000-0000-0000-000000000000"
            )
