"""Settings: one typed object, made from the environment once. The only module that reads the environment.

Every field's description and its row in docs/settings.md are compared by a test.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal, Self, cast
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from shared.platform.errors import ConfigurationError
from shared.platform.language_models.features import ALL_FEATURES, Feature
from shared.platform.setting_checks import (
    check_address,
    check_document_intelligence,
    check_graph,
    check_public_address,
    check_web_search,
    explain,
)


class EnvironmentModel(BaseSettings):
    """Fields that are environment variables, by their alias or name, in any case; an empty one is not set."""

    # Parts are built with `Settings` alone: nobody makes one of them, and a cold start need not build them.
    model_config = SettingsConfigDict(case_sensitive=False, env_ignore_empty=True, defer_build=True)


class LimitSettings(EnvironmentModel):
    """How many calls a person may make, and how much may run for them at once."""

    rate_limit_per_minute: int = Field(
        default=60,  # one a second for hours: no person asks faster, and no mistake in a script costs more
        ge=0,
        le=100_000,
        description="Calls that cost (questions, searches, summaries, uploads) of one person in a minute; "
        "that many at once, then evenly. More are a 429. 0 = no limit.",
    )
    max_concurrent_runs: int = Field(
        default=5,
        ge=0,
        le=1000,
        description="Questions and summaries of one person that are worked on at the same time; a run that "
        "waits for an answer does not count. More are a 429. 0 = no limit.",
    )


AUTO = "auto"


class ModelSettings(EnvironmentModel):
    """What need not be found out by being refused."""

    model_features: str = Field(
        default=AUTO,
        description="Parts of the OpenAI protocol that the endpoint has, comma separated: "
        "docs/models.md; auto = found out from what it refuses.",
        examples=["json_object,max_tokens,system_role,images"],
    )

    @model_validator(mode="after")
    def _check_model_features(self) -> Self:
        unknown = sorted((self.known_model_features or frozenset()) - ALL_FEATURES)
        if unknown:
            raise ValueError(
                f"MODEL_FEATURES names what is no part of the protocol; known are "
                f"{', '.join(sorted(ALL_FEATURES))}. Example: MODEL_FEATURES=auto"
            )
        return self

    @property
    def known_model_features(self) -> frozenset[Feature] | None:
        """What the endpoint has; None = nobody knows yet."""
        if self.model_features.strip().lower() == AUTO:
            return None
        named = (name.strip().lower() for name in self.model_features.split(","))
        return frozenset(cast("Feature", name) for name in named if name)


_TOOLS = ("retrieve_documents", "query_metadata", "web_search")


class SubagentSettings(EnvironmentModel):
    """Limits, budgets and thresholds of sub-agents."""

    subagents_enabled: bool = Field(
        default=True, description="Questions that need deeper work may get sub-agents."
    )
    subagents_max_per_request: int = Field(
        default=2, ge=0, le=10, description="Most sub-agents that one question may get."
    )
    subagents_max_recursion_depth: int = Field(
        default=1, ge=0, le=3, description="1 = sub-agents start no others; 0 = there are none."
    )
    subagents_child_timeout_ms: int = Field(
        default=15_000, gt=0, le=600_000, description="Most milliseconds for one sub-agent."
    )
    subagents_child_max_turns: int = Field(
        default=3, ge=1, le=20, description="Most turns of the model in one sub-agent."
    )
    subagents_child_retry_count: int = Field(
        default=1, ge=0, le=3, description="How often a sub-agent that failed is tried again."
    )
    subagents_child_retry_backoff_ms: int = Field(
        default=750,
        ge=0,
        le=60_000,
        description="Milliseconds before it is, and before a deferred decision is made anew.",
    )
    subagents_child_min_latency_ms: int = Field(
        default=4_000,  # unmeasured: one search and one short turn of a model
        ge=1,
        description="With fewer milliseconds no sub-agent is started.",
    )
    subagents_reserve_latency_ms: int = Field(
        default=5_000,  # unmeasured: an answer of usual length
        ge=0,
        description="Milliseconds kept back for the main agent, which writes the answer.",
    )
    subagents_reserve_tokens: int = Field(
        default=6_000,  # ten blocks of 230 tokens, and MAX_ANSWER_TOKENS less hidden reasoning
        ge=0,
        description="Tokens kept back for the main agent, which writes the answer.",
    )
    subagents_max_active: int = Field(
        default=20,  # unmeasured: ten questions with two each
        ge=0,
        description="Most sub-agents at work at once, of all questions and instances together.",
    )
    subagents_max_queue_depth: int = Field(
        default=20,  # unmeasured: as many as may be at work
        ge=1,
        description="With so many sub-agents waiting, decisions to start one are deferred.",
    )
    subagents_restricted_tools_only: bool = Field(
        default=False, description="Sub-agents may use the tools of SUBAGENTS_RESTRICTED_TOOLS and no others."
    )
    subagents_restricted_tools: str = Field(
        default="retrieve_documents,query_metadata",
        description="Those tools, comma separated; of retrieve_documents, query_metadata, web_search.",
    )
    subagents_compliance_mode: Literal["normal", "strict"] = Field(
        default="normal", description="strict = the restricted tools only, and never the web."
    )
    subagents_sensitive_departments: str = Field(
        default="",
        description="Departments, comma separated: nothing is looked up on the web for questions that their "
        "documents were found for.",
        examples=["Human Resources,Legal"],
    )
    subagents_degraded_mode: bool = Field(
        default=False, description="Reduced operation: no sub-agents until it is over."
    )

    circuit_breaker_failure_rate_threshold: float = Field(
        default=0.35, gt=0, le=1, description="Share of sub-agents that failed from which on they are paused."
    )
    circuit_breaker_window_requests: int = Field(
        default=50, ge=1, le=1000, description="The newest so many sub-agents are looked at for it."
    )
    circuit_breaker_cooldown_seconds: int = Field(
        default=300, ge=1, description="Seconds of the pause, until one is tried."
    )

    low_retrieval_confidence_top_score: float = Field(
        default=0.62, ge=0, le=1, description="A best score below it calls for a sub-agent."
    )
    high_confidence_no_delegate_top_score: float = Field(
        default=0.78,
        ge=0,
        le=1,
        description="From this best score on, clearly ahead, a fact needs no sub-agent.",
    )
    low_score_spread_ambiguity: float = Field(
        default=0.08,
        ge=0,
        le=1,
        description="Six passages or more whose best is less ahead than this call for a sub-agent.",
    )
    high_score_spread_clarity: float = Field(
        default=0.15, ge=0, le=1, description="From here on the best passage is clearly ahead."
    )

    max_total_tokens_per_request: int = Field(
        default=24_000, gt=0, description="Most tokens of one question, sub-agents included."
    )
    max_child_tokens: int = Field(default=8_000, gt=0, description="Most tokens of one sub-agent.")
    max_subagent_cost_usd: float = Field(
        default=0.08, ge=0, description="Most US dollars for all sub-agents of one question."
    )
    max_child_cost_usd: float = Field(default=0.03, gt=0, description="Most US dollars for one sub-agent.")
    chat_model_input_usd_per_million_tokens: float = Field(
        default=0.40,  # list price of gpt-4.1-mini, for which the prompts are written
        ge=0,
        description="What CHAT_MODEL costs for a million tokens that it reads, in US dollars; sub-agents are "
        "held to their budget by it.",
    )
    chat_model_output_usd_per_million_tokens: float = Field(
        default=1.60,  # as above
        ge=0,
        description="The same for a million tokens that it writes.",
    )
    max_total_latency_ms: int = Field(
        default=25_000,
        gt=0,
        description="Most milliseconds for one question, from its arrival to its stored answer; longer "
        "limits of its steps are cut by it.",
    )
    min_remaining_latency_to_delegate_ms: int = Field(
        default=12_000, ge=0, description="With fewer milliseconds left no sub-agent is started."
    )
    min_remaining_tokens_to_delegate: int = Field(
        default=8_000,  # unmeasured: the reserve, and one turn over some passages
        ge=0,
        description="With fewer tokens left no sub-agent is started.",
    )
    min_remaining_cost_to_delegate_usd: float = Field(
        default=0.005,  # unmeasured: one turn of a small model
        ge=0,
        description="With fewer US dollars left no sub-agent is started.",
    )

    @property
    def restricted_subagent_tools(self) -> tuple[str, ...]:
        """SUBAGENTS_RESTRICTED_TOOLS, one by one."""
        return _names(self.subagents_restricted_tools)

    @property
    def sensitive_departments(self) -> tuple[str, ...]:
        """SUBAGENTS_SENSITIVE_DEPARTMENTS, one by one, in lower case."""
        return tuple(name.casefold() for name in _names(self.subagents_sensitive_departments))

    @model_validator(mode="after")
    def _check_subagents(self) -> Self:
        for lower, upper in _ordered():
            if getattr(self, lower) >= getattr(self, upper):
                raise ValueError(
                    f"{lower.upper()} ({getattr(self, lower)}) must be less than {upper.upper()} "
                    f"({getattr(self, upper)})."
                )
        unknown = [name for name in self.restricted_subagent_tools if name not in _TOOLS]
        if unknown:
            raise ValueError(
                f"SUBAGENTS_RESTRICTED_TOOLS names no tool of a sub-agent: {', '.join(unknown)}. "
                "Example: SUBAGENTS_RESTRICTED_TOOLS=retrieve_documents,query_metadata"
            )
        return self


def _ordered() -> Iterator[tuple[str, str]]:
    """Pairs of settings of which the first must be less."""
    yield "low_retrieval_confidence_top_score", "high_confidence_no_delegate_top_score"
    yield "low_score_spread_ambiguity", "high_score_spread_clarity"
    yield "subagents_reserve_tokens", "min_remaining_tokens_to_delegate"
    yield "subagents_reserve_latency_ms", "min_remaining_latency_to_delegate_ms"
    yield "subagents_reserve_latency_ms", "max_total_latency_ms"


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name for part in listed.split(",") if (name := part.strip()))


_HEADER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")


class WebSearchSettings(EnvironmentModel):
    """Where the web is searched."""

    web_search_url: str | None = Field(
        default=None,
        description="Address of a search engine with SearXNG's JSON API; https, or on this machine. "
        "Unset = the web is never searched.",
        examples=["https://NAME/search"],
    )
    web_search_key: str | None = Field(
        default=None, description="Key of that search engine, if it wants one.", repr=False
    )
    web_search_key_header: str = Field(
        default="X-Api-Key", description="Header that carries the key, as it is.", examples=["Authorization"]
    )

    @model_validator(mode="after")
    def _check_web_search(self) -> Self:
        if self.web_search_url is not None:
            check_web_search(self.web_search_url)
        if not _HEADER_NAME.fullmatch(self.web_search_key_header):
            raise ValueError(
                "WEB_SEARCH_KEY_HEADER is no name of a header. Example: WEB_SEARCH_KEY_HEADER=Authorization"
            )
        if self.web_search_key is not None and not self.web_search_key.isprintable():
            raise ValueError("WEB_SEARCH_KEY holds characters that no header can carry.")
        return self


_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_HEADER = re.compile(r"\s*[A-Za-z0-9][A-Za-z0-9_-]{0,99}\s*=[\x20-\x2b\x2d-\x7e]*")


class TelemetrySettings(EnvironmentModel):
    """Where traces and metrics go. The names that OpenTelemetry and Azure have for them are kept."""

    otel_exporter_otlp_endpoint: str | None = Field(
        default=None,
        description="Receiver of traces and metrics by OTLP over HTTP, without /v1/traces; unset = none. "
        "https, or http without headers.",
        examples=["http://localhost:4318"],
    )
    otel_exporter_otlp_headers: str | None = Field(
        default=None,
        description="Headers for that receiver, such as its key: name=value, comma separated.",
        repr=False,
    )
    otel_service_name: str = Field(
        default="groundwork", min_length=1, max_length=100, description="Name of the app in traces."
    )
    applicationinsights_connection_string: str | None = Field(
        default=None,
        description="Application Insights resource that gets traces and metrics; unset = none.",
        repr=False,
    )
    applicationinsights_authentication_string: str | None = Field(
        default=None,
        description="As the platform has it: with Authorization=AAD the managed identity signs in there; "
        "ClientId= names it.",
        examples=["Authorization=AAD"],
    )
    trace_sample_ratio: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="Share of the traces that begin here which is recorded; one that comes with a request is "
        "recorded if its caller records it.",
    )
    trace_content: bool = Field(
        default=False,
        description="Put what models are told and what they say into traces: questions, documents, answers.",
    )

    @property
    def has_telemetry(self) -> bool:
        """Whether traces and metrics go anywhere."""
        return bool(self.otel_exporter_otlp_endpoint or self.applicationinsights_connection_string)

    @property
    def otlp_headers(self) -> dict[str, str]:
        """OTEL_EXPORTER_OTLP_HEADERS as names and values."""
        pairs = (pair.partition("=") for pair in (self.otel_exporter_otlp_headers or "").split(",") if pair)
        return {name.strip().lower(): value.strip() for name, _, value in pairs}

    @model_validator(mode="after")
    def _check_telemetry(self) -> Self:
        if self.otel_exporter_otlp_endpoint is not None:
            _check_receiver(self.otel_exporter_otlp_endpoint, bool(self.otel_exporter_otlp_headers))
        headers = (self.otel_exporter_otlp_headers or "").split(",")
        if not all(_HEADER.fullmatch(header) for header in headers if header):
            raise ValueError(
                "OTEL_EXPORTER_OTLP_HEADERS is not name=value, comma separated: headers for the receiver of "
                "traces. Example: OTEL_EXPORTER_OTLP_HEADERS=x-api-key=KEY"
            )
        insights = self.applicationinsights_connection_string
        if insights is not None and "instrumentationkey=" not in insights.lower():
            raise ValueError(
                "APPLICATIONINSIGHTS_CONNECTION_STRING is no connection string: the resource that gets "
                "traces. Example: APPLICATIONINSIGHTS_CONNECTION_STRING=InstrumentationKey=…"
            )
        return self


def _check_receiver(address: str, has_headers: bool) -> None:
    parts = urlsplit(address)
    example = "Example: OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318"
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
        raise ValueError(
            f"OTEL_EXPORTER_OTLP_ENDPOINT is not an http address: the receiver of traces. {example}"
        )
    if has_headers and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise ValueError(
            "OTEL_EXPORTER_OTLP_ENDPOINT must be https: OTEL_EXPORTER_OTLP_HEADERS go with each request. "
            "Example: OTEL_EXPORTER_OTLP_ENDPOINT=https://NAME/otlp"
        )


class AgentSettings(ModelSettings, SubagentSettings, WebSearchSettings, LimitSettings, TelemetrySettings):
    """What is kept of conversations, what limits summaries of documents, sub-agents, and the web."""

    conversation_turns: int = Field(
        default=6,
        ge=2,
        le=30,
        description="Turns of a thread that a question is given as they were; once there are more, the older "
        "half is compressed into the thread's summary.",
    )
    run_retention_days: int = Field(
        default=30,
        ge=1,
        description="Days after which a run's events and working memory are deleted, and a summary of "
        "documents; a run's answer stays as long as its thread.",
    )

    summary_timeout_s: float = Field(
        default=900,
        gt=0,
        le=6 * 3600,
        description="Most seconds for a summary of documents; what is read by then is summed up.",
    )
    summary_call_timeout_s: float = Field(
        default=60, gt=0, le=240, description="Most seconds for one call of the model for a summary."
    )
    summary_window_tokens: int = Field(
        default=3000,  # unmeasured: small enough for findings from everywhere, large enough to be few
        ge=300,
        le=100_000,
        description="Most tokens of a document that the model reads at once for a summary.",
    )
    summary_max_windows: int = Field(
        default=120,
        ge=1,
        le=900,
        description="Most windows of one document; a longer one is summarised in part, with a warning.",
    )
    summary_documents_at_once: int = Field(
        default=4, ge=1, le=20, description="Documents of one summary that are read at the same time."
    )
    summary_output_tokens: int = Field(
        default=4000,  # as for an answer: the hidden reasoning of a reasoning model counts as well
        gt=0,
        description="Most tokens that the model writes in one call for a summary, hidden reasoning included.",
    )


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


_TENANT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class IdentitySettings(EnvironmentModel):
    """What is believed of a token, and what is asked of Microsoft Graph."""

    allowed_tenants: str = Field(
        default="",
        description="Ids of the Entra ID tenants whose people are let in, comma separated; empty = whom App "
        "Service Authentication lets in.",
        examples=["72f988bf-86f1-41af-91ab-2d7cd011db47"],
    )
    guests: Literal["named", "members", "refused"] = Field(
        default="named",
        description="Guests of a tenant read what is open to them by name, by group, or to everybody; "
        "members = also what is open to the organisation; refused = they are not let in.",
    )
    allow_applications: bool = Field(
        default=False, description="Programs may call as themselves, with no person signed in."
    )
    department_claim: str | None = Field(
        default=None,
        description="Claim that carries a person's department; unset = `department`, or a directory "
        "extension of that name.",
        examples=["extension_0123456789abcdef0123456789abcdef_division"],
    )
    group_overage: Literal["resolve", "refuse", "ignore"] = Field(
        default="resolve",
        description="For people with more groups than a token has room for: look them up in Microsoft Graph, "
        "refuse the person (403), or count none of their groups.",
    )
    group_cache_s: int = Field(
        default=300,
        ge=0,
        le=3600,
        description="Seconds for which groups that were looked up hold; 0 = for one request.",
    )
    graph_endpoint: str = Field(
        default="https://graph.microsoft.com",
        description="Microsoft Graph, or that of a national cloud.",
        examples=["https://graph.microsoft.us"],
    )
    graph_timeout_s: float = Field(
        default=5,  # unmeasured: a page takes some tenths of a second, and somebody waits
        gt=0,
        le=30,
        description="Most seconds for looking up a person's groups, all pages and tries together.",
    )

    @property
    def tenants(self) -> tuple[str, ...]:
        """ALLOWED_TENANTS, one by one, in lower case."""
        return tuple(name for part in self.allowed_tenants.split(",") if (name := part.strip().casefold()))

    @model_validator(mode="after")
    def _check_identity(self) -> Self:
        check_graph(self.graph_endpoint)
        wrong = [name for name in self.tenants if not _TENANT.fullmatch(name)]
        if wrong:
            raise ValueError(
                "ALLOWED_TENANTS holds something else than ids of tenants. "
                "Example: ALLOWED_TENANTS=72f988bf-86f1-41af-91ab-2d7cd011db47"
            )
        return self


class Settings(IdentitySettings, AgentSettings, BotSettings):
    """What a deployment sets. Names are the environment variables', in upper case."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        hide_input_in_errors=True,  # it could be a key
        defer_build=False,
    )

    azure_search_endpoint: str = Field(
        description="Search service that holds the indexes.", examples=["https://NAME.search.windows.net"]
    )
    azure_search_api_key: str | None = Field(
        default=None, description="Key of the search service; unset = managed identity.", repr=False
    )
    azure_search_content_index: str = Field(default="content-blocks", description="Index of blocks.")
    azure_search_documents_index: str = Field(default="documents-metadata", description="Index of documents.")
    azure_search_memory_index: str = Field(
        default="conversation-memory", description="Index of remembered questions."
    )

    documents_storage: str | None = Field(
        default=None,
        alias="DocumentsStorage",
        description="Connection string of the storage account with the documents; unset = managed identity "
        "with the three DocumentsStorage__…ServiceUri settings.",
        repr=False,
    )
    documents_storage_blob_uri: str | None = Field(
        default=None,
        alias="DocumentsStorage__blobServiceUri",
        description="Blob endpoint of the storage account, used with managed identity.",
        examples=["https://NAME.blob.core.windows.net"],
    )
    documents_storage_queue_uri: str | None = Field(
        default=None,
        alias="DocumentsStorage__queueServiceUri",
        description="Queue endpoint of the same account; the blob trigger needs it.",
        examples=["https://NAME.queue.core.windows.net"],
    )
    documents_storage_table_uri: str | None = Field(
        default=None,
        alias="DocumentsStorage__tableServiceUri",
        description="Table endpoint of the same account.",
        examples=["https://NAME.table.core.windows.net"],
    )
    tables_endpoint: str | None = Field(
        default=None,
        description="Table endpoint of another account, such as Cosmos DB's for tables; unset = the storage "
        "account's.",
        examples=["https://NAME.table.cosmos.azure.com"],
    )
    tables_key: str | None = Field(
        default=None,
        description="Key of the account of TABLES_ENDPOINT; unset = managed identity.",
        repr=False,
    )
    azure_client_id: str | None = Field(
        default=None, description="Client id of the user-assigned managed identity."
    )

    openai_base_url: str | None = Field(
        default=None,
        description="Any OpenAI-compatible endpoint; set this or AZURE_OPENAI_ENDPOINT.",
        examples=["https://api.openai.com/v1"],
    )
    openai_api_key: str | None = Field(
        default=None, description="Key for OPENAI_BASE_URL, if it wants one.", repr=False
    )
    azure_openai_endpoint: str | None = Field(
        default=None,
        description="Azure OpenAI resource; set this or OPENAI_BASE_URL.",
        examples=["https://NAME.openai.azure.com"],
    )
    azure_openai_api_key: str | None = Field(
        default=None, description="Key of the Azure OpenAI resource; unset = managed identity.", repr=False
    )
    azure_openai_api_version: str = Field(
        default="2025-04-01-preview", description="API version of the Azure OpenAI resource."
    )
    chat_model: str = Field(description="Chat deployment or model name.", examples=["gpt-5-mini"])
    vision_model: str | None = Field(
        default=None,
        description="Deployment or model that describes figures; unset = CHAT_MODEL, if that one sees.",
        examples=["gpt-5-mini"],
    )
    embedding_model: str = Field(
        description="Embedding deployment or model name.", examples=["text-embedding-3-large"]
    )
    embedding_dimensions: int = Field(
        gt=0, le=4096, description="Length of the embedding model's vectors.", examples=["3072"]
    )
    embedding_tokenizer_path: str | None = Field(
        default=None,
        description="tokenizer.json of the embedding model, for exact block sizes; "
        "unset = 3.6 characters a token.",
    )

    max_block_tokens: int = Field(
        default=230, ge=50, le=8000, description="Most tokens in a block; 400-500 suits text-embedding-3."
    )
    max_document_bytes: int = Field(
        default=500_000_000, gt=0, description="A larger file is refused, with the reason in its status."
    )
    parse_timeout_s: float = Field(default=300, gt=0, description="Most seconds for parsing one file.")
    max_figures: int = Field(
        default=200,
        ge=0,
        le=2000,
        description="Most figures of one document; a new one costs a call of the vision model.",
    )
    recognition_seconds: float = Field(
        default=200,
        ge=0,
        le=400,
        description="Most seconds for reading scanned pages and pictures of one file by Tesseract, on top of "
        "PARSE_TIMEOUT_S; a page takes about 4. 0 = none is read.",
    )
    parser_backend: Literal["local", "document_intelligence", "docling"] = Field(
        default="local",
        description="What reads the layout of PDFs and pictures; another than local is a service.",
    )
    text_recognition: Literal["tesseract", "document_intelligence"] = Field(
        default="tesseract", description="What reads pages without text when PARSER_BACKEND is local."
    )
    parser_service_timeout_s: float = Field(
        default=180,
        gt=0,
        le=300,  # with PARSE_TIMEOUT_S within the host's 10 minutes
        description="Most seconds for one file at the parser service; then our own parser reads it.",
    )
    document_intelligence_endpoint: str | None = Field(
        default=None,
        description="Azure Document Intelligence resource, for PARSER_BACKEND or TEXT_RECOGNITION.",
        examples=["https://NAME.cognitiveservices.azure.com"],
    )
    document_intelligence_key: str | None = Field(
        default=None,
        description="Key of the Document Intelligence resource; unset = managed identity.",
        repr=False,
    )
    docling_endpoint: str | None = Field(
        default=None,
        description="docling-serve, for PARSER_BACKEND=docling.",
        examples=["http://docling:5001"],
    )
    docling_api_key: str | None = Field(
        default=None, description="Key of docling-serve, if it wants one.", repr=False
    )
    default_access: str = Field(
        default="",
        description="Principals, comma separated, for documents that bring no list of their own; "
        "empty = the owner alone.",
    )

    plan_timeout_s: float = Field(default=10, gt=0, description="Most seconds for planning a question.")
    search_timeout_s: float = Field(default=30, gt=0, description="Most seconds for one search query.")
    gather_timeout_s: float = Field(
        default=60, gt=0, description="Most seconds for all searches of one step of a question together."
    )
    clarification_timeout_s: float = Field(
        default=3 * 86400,
        gt=0,
        le=30 * 86400,
        description="Most seconds to wait for an answer to which document is meant.",
    )
    max_attempts: int = Field(
        default=2, ge=1, le=3, description="Attempts at finding evidence, each wider; 1 = no second one."
    )
    semantic_ranker: bool = Field(
        default=False,  # not every tier and region has it, and it is charged by the query
        description="The search service's semantic ranker orders what was found, where the service has one.",
    )
    refine_evidence: bool = Field(
        default=True, description="The model orders and sorts out passages of which retrieval is not sure."
    )
    answer_timeout_s: float = Field(default=90, gt=0, description="Most seconds for writing an answer.")
    max_answer_tokens: int = Field(
        default=4000,  # an answer has some 600; the hidden reasoning of a reasoning model counts as well
        gt=0,
        description="Most tokens that the model writes for an answer, hidden reasoning included.",
    )
    answer_blocks: int = Field(default=10, ge=1, le=50, description="Blocks that an answer is written from.")
    organisation: str = Field(
        default="an organisation",
        min_length=1,
        max_length=100,
        description="Whose documents these are, as the prompt of an answer says it.",
        examples=["Contoso Ltd"],
    )
    max_question_chars: int = Field(default=8000, gt=0, description="A longer question is refused (413).")

    stream_seconds: float = Field(
        default=180,
        gt=0,
        le=220,
        description="A stream ends on purpose after this, to be resumed by Last-Event-ID.",
    )
    dev_token_secret: str | None = Field(
        default=None,
        min_length=32,
        description="Secret that signs development tokens; refused in Azure.",
        repr=False,
    )
    allow_anonymous: bool = Field(
        default=False, description="Search without a user context (tests only; refused in Azure)."
    )
    website_site_name: str | None = Field(default=None, description="Set by Azure; tells that we run there.")
    website_auth_enabled: bool = Field(
        default=False, description="Set by Azure while App Service Authentication guards the app."
    )

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if not (self.openai_base_url or self.azure_openai_endpoint):
            raise ValueError(
                "OPENAI_BASE_URL or AZURE_OPENAI_ENDPOINT is missing: the model endpoint. "
                "Example: OPENAI_BASE_URL=https://api.openai.com/v1"
            )
        if not self.documents_storage and not (
            self.documents_storage_blob_uri and self.documents_storage_table_uri
        ):
            raise ValueError(
                "DocumentsStorage is missing: the storage account with the documents. Example: "
                "DocumentsStorage__blobServiceUri=https://NAME.blob.core.windows.net and "
                "DocumentsStorage__tableServiceUri=https://NAME.table.core.windows.net"
            )
        if self.in_azure and (self.dev_token_secret or self.allow_anonymous or self.bot_local_anonymous):
            raise ValueError(
                "DEV_TOKEN_SECRET, ALLOW_ANONYMOUS and BOT_LOCAL_ANONYMOUS are for development; "
                "remove them in Azure."
            )
        return self

    @model_validator(mode="after")
    def _check_parser_services(self) -> Self:
        if "document_intelligence" in (self.parser_backend, self.text_recognition):
            check_document_intelligence(self.document_intelligence_endpoint, self.document_intelligence_key)
        if self.parser_backend == "docling":
            check_address("DOCLING_ENDPOINT", self.docling_endpoint, "http://docling:5001")
        return self

    @property
    def tables_are_in_cosmos_db(self) -> bool:
        """Whether queries of tables answer in no order (decision 0010)."""
        return ".table.cosmos." in (self.tables_endpoint or "")

    @property
    def in_azure(self) -> bool:
        """Whether App Service runs us. Guards refuse by it; no feature may depend on it."""
        return self.website_site_name is not None


def load_settings() -> Settings:
    """Read the environment.

    Raises:
        ConfigurationError: one line for each missing or wrong variable: its name, purpose and an example.
    """
    try:
        return Settings()  # the environment gives the required fields
    except ValidationError as invalid:
        lines = [
            explain(Settings.model_fields, str(error["loc"][0]) if error["loc"] else "", error["msg"])
            for error in invalid.errors()
        ]
        raise ConfigurationError("\n".join(lines)) from None


@cache
def get_settings() -> Settings:
    """The process's settings, read once."""
    return load_settings()
