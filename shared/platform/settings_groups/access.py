"""Settings of the people who use the app: identity, limits and chats."""

from typing import Literal, Self

from pydantic import Field, model_validator

from shared.platform.listed_people import ListedPerson, listed_people
from shared.platform.settings_groups.base import SettingsGroup, constant, prefixed
from shared.platform.settings_groups.values import (
    EntraId,
    HostList,
    OneEntraId,
    Origin,
    PersonList,
    Secret,
    listed,
)


class LimitSettings(SettingsGroup):
    """Limits per person. Rate limits and daily quotas."""

    rate_limit_per_minute: int = Field(
        # No person sends requests this fast, but a faulty script is limited to one request per second.
        default=60,
        ge=0,
        le=100_000,
        description=(
            "Maximum number of [metered calls](api.md#limits) per user and minute. 0 = no limit, as "
            "for all limits below."
        ),
    )
    max_concurrent_runs: int = Field(
        default=5,
        ge=0,
        le=1000,
        description=(
            "Maximum number of concurrent questions and summaries per user. Waiting runs don't count."
        ),
    )
    max_open_streams: int = constant(10)  # limit per user; an instance serves 32 requests at a time
    # The daily limits stop a script that runs all night but should never affect a person. Unmeasured.
    max_daily_documents: int = Field(
        default=10_000,
        ge=0,
        description="Maximum number of uploaded files per user and day (UTC).",
    )
    max_daily_size_bytes: int = Field(
        default=20_000_000_000, ge=0, description="Maximum number of bytes ingested per user and day (UTC)."
    )
    # As much as one parser that runs for a quarter of the day.
    max_daily_parser_seconds: int = constant(6 * 3600)
    max_daily_blocks: int = constant(1_000_000)
    max_daily_captions: int = constant(20_000)
    max_daily_chat_tokens: int = Field(
        default=20_000_000,
        ge=0,
        description="Maximum number of tokens of questions and summaries per user and day (UTC).",
    )
    max_daily_page_images: int = constant(5000)


class BotSettings(SettingsGroup, alias_generator=prefixed("BOT_")):
    """Bot. Connection to Azure Bot Service, for use in Teams."""

    app_id: EntraId | None = Field(
        default=None,
        description="Client id of the Azure Bot; unset = no bot.",
        examples=["00000000-0000-0000-0000-000000000000"],
    )
    tenant_id: EntraId | None = Field(
        default=None,
        description="Entra tenant of the bot's users. Required with BOT_APP_ID.",
        examples=["72f988bf-86f1-41af-91ab-2d7cd011db47"],
    )
    cloud: Literal["public", "usgov"] = Field(
        default="public",
        description="Microsoft cloud of the bot; usgov = GCC High or DoD.",
        examples=["usgov"],
    )
    local_anonymous: bool = Field(
        default=False,
        description=(
            "Whether to accept messages without a token from this machine. Not allowed in hosted deployments."
        ),
    )
    attachment_host_list: HostList = Field(
        alias="BOT_ATTACHMENT_HOSTS",
        default=".sharepoint.com,smba.trafficmanager.net",
        description="Hosts of chat attachments, comma separated; `.NAME` = all subdomains.",
        examples=["contoso-my.sharepoint.com,smba.trafficmanager.net"],
    )
    stream_seconds: float = constant(100)  # Teams limits a streamed message to 2 minutes.

    @property
    def attachment_hosts(self) -> tuple[str, ...]:
        """Host names listed in BOT_ATTACHMENT_HOSTS, case-folded for comparison."""
        return tuple(host.casefold() for host in listed(self.attachment_host_list))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.app_id and not self.tenant_id:
            raise ValueError(
                "BOT_TENANT_ID is missing. It is the Entra tenant of the bot's users. "
                "Example: BOT_TENANT_ID=72f988bf-86f1-41af-91ab-2d7cd011db47"
            )
        if self.app_id and self.local_anonymous:
            raise ValueError(
                "BOT_LOCAL_ANONYMOUS and BOT_APP_ID cannot both be set: a bot with an identity accepts only "
                "messages with a token. Remove one of them."
            )
        return self


class IdentitySettings(SettingsGroup):
    """Identity and access. Who may use the app, and how long audit records are kept."""

    allowed_tenants: OneEntraId = Field(
        default="",
        description=(
            "Entra tenant whose users are admitted; empty = anyone admitted by App Service Authentication."
        ),
        examples=["72f988bf-86f1-41af-91ab-2d7cd011db47"],
    )
    guests: Literal["named", "members", "refused"] = Field(
        default="named",
        description=(
            "Access of guests: named = documents shared with them, their groups or `*`; members = "
            "also with the organisation; refused = none."
        ),
    )
    allow_applications: bool = Field(
        default=False, description="Whether applications may call the API without a user."
    )
    department_claim: str | None = Field(
        default=None,
        description="Token claim with the user's department; unset = `department`.",
        examples=["extension_0123456789abcdef0123456789abcdef_division"],
    )
    group_overage: Literal["resolve", "refuse", "ignore"] = Field(
        default="resolve",
        description=(
            "Treatment of users with too many groups for a token: resolve = look them up in Microsoft "
            "Graph; refuse = 403; ignore = no groups."
        ),
    )
    group_cache_s: int = Field(
        default=300,
        ge=0,
        le=3600,
        description="Seconds for which group memberships from Microsoft Graph are cached.",
    )
    graph_endpoint: Origin = Field(
        default="https://graph.microsoft.com",
        description="URL of Microsoft Graph.",
        examples=["https://graph.microsoft.us"],
    )
    # Unmeasured. A page of results takes a few tenths of a second, and a user is waiting for it.
    graph_timeout_s: float = constant(5)
    local_directory: PersonList = Field(
        default="",
        description=(
            "People to share documents with, as a JSON list, for use outside Azure. Empty = access "
            "lists accept any name."
        ),
        examples=['[{"id": "anna", "name": "Anna Bergqvist", "groups": ["safety-committee"]}]'],
    )
    publish_role: str = Field(
        default="",
        description="Role required for opening documents to the organisation or everyone; empty = none.",
        examples=["publisher"],
    )
    audit_retention_days: int = Field(
        default=365,
        ge=1,
        le=3650,
        description="Days before audit trail entries are deleted.",
    )
    owner_id_key: Secret = Field(
        min_length=32,
        description=(
            "Secret for pseudonymous owner ids, at least 32 random characters. Never change it: "
            "erasing a person would miss older conversations."
        ),
        examples=["the output of: openssl rand -hex 32"],
        repr=False,
    )
    dev_token_secret: Secret | None = Field(
        default=None,
        min_length=32,
        description=(
            "Secret for development tokens, at least 32 random characters. Not allowed in hosted deployments."
        ),
        repr=False,
    )

    @property
    def people(self) -> tuple[ListedPerson, ...]:
        """People listed in LOCAL_DIRECTORY."""
        return listed_people(self.local_directory)

    @property
    def tenants(self) -> tuple[str, ...]:
        """Tenant ids listed in ALLOWED_TENANTS, case-folded. Validation allows at most one."""
        return tuple(name.casefold() for name in listed(self.allowed_tenants))
