"""Settings of the services that the app uses, and of the host that runs it."""

from typing import Literal, Self, cast

from pydantic import Field, model_validator

from shared.platform.language_models.protocol import ALL_FEATURES, Effort, Efforts, Feature
from shared.platform.settings_groups.base import (
    SettingsGroup,
    constant,
    model_timeout,
    of_the_platform,
    prefixed,
)
from shared.platform.settings_groups.values import (
    HeaderList,
    HttpUrl,
    InsightsConnection,
    Origin,
    is_encrypted,
    listed,
)

_AUTO = "auto"


class SearchSettings(SettingsGroup, alias_generator=prefixed("AZURE_SEARCH_")):
    """Search service. Connection to Azure AI Search and the names of its indexes."""

    endpoint: str = Field(
        description="URL of the search service.",
        examples=["https://NAME.search.windows.net"],
    )
    api_key: str | None = Field(
        default=None, description="API key of the search service; unset = managed identity.", repr=False
    )
    admin_client_id: str | None = Field(
        default=None,
        description="Client id of the identity that creates indexes; unset = the app's.",
    )
    content_index: str = Field(default="content-blocks", description="Name of the index of blocks.")
    documents_index: str = Field(default="documents-metadata", description="Name of the index of documents.")
    memory_index: str = Field(
        default="conversation-memory", description="Name of the index of past questions."
    )
    # A generous limit: a search usually takes a few tenths of a second.
    timeout_s: float = constant(30, alias="SEARCH_TIMEOUT_S")
    semantic_ranker: bool = Field(
        alias="SEMANTIC_RANKER",
        default=False,  # Semantic ranking is billed per query and not available in every tier and region.
        description="Whether to rerank results with the semantic ranker.",
    )


class StorageSettings(SettingsGroup):
    """Storage. Connections to the blob, queue and table services."""

    connection_string: str | None = Field(
        alias="DocumentsStorage",
        default=None,
        description=(
            "Connection string of the documents' storage; unset = managed identity and `DocumentsStorage__…`."
        ),
        repr=False,
    )
    blob_uri: str | None = Field(
        alias="DocumentsStorage__blobServiceUri",
        default=None,
        description="Blob endpoint of the documents' storage.",
        examples=["https://NAME.blob.core.windows.net"],
    )
    queue_uri: str | None = Field(
        alias="DocumentsStorage__queueServiceUri",
        default=None,
        description="Queue endpoint of the documents' storage.",
        examples=["https://NAME.queue.core.windows.net"],
    )
    table_uri: str | None = Field(
        alias="DocumentsStorage__tableServiceUri",
        default=None,
        description="Table endpoint of the documents' storage.",
        examples=["https://NAME.table.core.windows.net"],
    )
    tables_endpoint: str | None = Field(
        default=None,
        description=(
            "Table endpoint of a separate account, such as Cosmos DB; unset = the documents' storage."
        ),
        examples=["https://NAME.table.cosmos.azure.com"],
    )
    tables_key: str | None = Field(
        default=None,
        description="Key for TABLES_ENDPOINT; unset = managed identity.",
        repr=False,
    )

    @property
    def tables_are_in_cosmos_db(self) -> bool:
        """Whether tables are stored in Cosmos DB, whose queries return rows in arbitrary order (decision
        0010).
        """
        return ".table.cosmos." in (self.tables_endpoint or "")

    @model_validator(mode="after")
    def _check_account(self) -> Self:
        if not self.connection_string and not (self.blob_uri and self.table_uri):
            raise ValueError(
                "DocumentsStorage is missing. It names the storage account that holds the documents. "
                "Example: "
                "DocumentsStorage__blobServiceUri=https://NAME.blob.core.windows.net and "
                "DocumentsStorage__tableServiceUri=https://NAME.table.core.windows.net"
            )
        return self


class ModelSettings(SettingsGroup):
    """Models. Endpoints, deployments, limits and prices of language models."""

    openai_base_url: str | None = Field(
        default=None,
        description="URL of an OpenAI-compatible endpoint; takes precedence over AZURE_OPENAI_ENDPOINT.",
        examples=["https://api.openai.com/v1"],
    )
    openai_api_key: str | None = Field(
        default=None, description="API key for OPENAI_BASE_URL, if needed.", repr=False
    )
    azure_openai_endpoint: str | None = Field(
        default=None,
        description="URL of the Azure OpenAI resource; ignored if OPENAI_BASE_URL is set.",
        examples=["https://NAME.openai.azure.com"],
    )
    azure_openai_api_key: str | None = Field(
        default=None,
        description="API key of the Azure OpenAI resource; unset = managed identity.",
        repr=False,
    )
    chat: str = Field(
        alias="CHAT_MODEL", description="Name of the chat deployment or model.", examples=["gpt-5.4-mini"]
    )
    vision: str | None = Field(
        alias="VISION_MODEL",
        default=None,
        description="Deployment or model that describes figures; unset = CHAT_MODEL, if it accepts images.",
        examples=["gpt-5.4-mini"],
    )
    embedding: str = Field(
        alias="EMBEDDING_MODEL",
        description="Name of the embedding deployment or model.",
        examples=["text-embedding-3-large"],
    )
    embedding_dimensions: int = Field(
        gt=0, le=4096, description="Number of dimensions of the embedding vectors.", examples=["3072"]
    )
    relevant_cosine: float | None = Field(
        alias="EMBEDDING_RELEVANT_COSINE",
        default=None,
        gt=0,
        le=1,
        description=(
            "Median cosine similarity of questions and matching passages (docs/models.md); unset = "
            "the known value for EMBEDDING_MODEL."
        ),
        examples=["0.44"],
    )
    embedding_timeout_s: float = model_timeout(120)  # an estimate, not measured
    # Path of a tokenizer.json for counting tokens exactly, set by `make run`. Without it, 3.6 characters
    # count as one token.
    embedding_tokenizer_path: str | None = constant(None)
    features: str = Field(
        alias="MODEL_FEATURES",
        default=_AUTO,
        description=(
            "[Protocol features](models.md#missing-features) of the endpoint, comma separated; auto = "
            "detect them."
        ),
        examples=["json_object,max_tokens,system_role,images"],
    )
    effort_with_tools: Effort | Literal["auto"] = Field(
        alias="REASONING_EFFORT_TOOLS",
        default="none",
        description=(
            "Reasoning effort for turns with tools: none, minimal, low, medium, high; auto = the "
            "model's default."
        ),
    )
    effort_of_short_calls: Effort | Literal["auto"] = Field(
        alias="REASONING_EFFORT_SHORT",
        default="minimal",
        description="Reasoning effort for short calls, such as planning.",
    )
    effort_of_writing: Effort | Literal["auto"] = Field(
        alias="REASONING_EFFORT_WRITING",
        default="low",
        description="Reasoning effort for reports and summaries.",
    )
    # Additional output tokens for hidden reasoning; 700 to 1,400 were observed at medium effort.
    reasoning_room_tokens: int = constant(3_000)
    timeout_factor: float = Field(
        alias="MODEL_TIMEOUT_FACTOR",
        default=1,
        gt=0,
        le=1000,
        description=(
            "Factor for all timeouts of model calls: 1 for at least 50 tokens per second, 2 for 25. "
            "Raise MAX_TOTAL_LATENCY_MS as well."
        ),
    )
    input_usd_per_million_tokens: float = Field(
        alias="CHAT_MODEL_INPUT_USD_PER_MILLION_TOKENS",
        default=0.75,  # list price of gpt-5.4-mini, which the deployment uses by default
        ge=0,
        description="US dollars per million input tokens, for budgets.",
    )
    cached_input_usd_per_million_tokens: float | None = Field(
        alias="CHAT_MODEL_CACHED_INPUT_USD_PER_MILLION_TOKENS",
        default=None,
        ge=0,
        description="US dollars per million cached input tokens; unset = no discount.",
        examples=["0.075"],
    )
    output_usd_per_million_tokens: float = Field(
        alias="CHAT_MODEL_OUTPUT_USD_PER_MILLION_TOKENS",
        default=4.50,  # list price of gpt-5.4-mini
        ge=0,
        description="US dollars per million output tokens.",
    )

    @property
    def efforts(self) -> Efforts:
        """Reasoning efforts by type of call. None means that the model's default applies."""
        tools, short, writing = self.effort_with_tools, self.effort_of_short_calls, self.effort_of_writing
        return Efforts(
            tools=None if tools == "auto" else tools,
            short=None if short == "auto" else short,
            writing=None if writing == "auto" else writing,
        )

    @property
    def in_azure(self) -> bool:
        """Whether model calls go to the Azure OpenAI resource rather than to OPENAI_BASE_URL."""
        return not self.openai_base_url and self.azure_openai_endpoint is not None

    @property
    def known_features(self) -> frozenset[Feature] | None:
        """Protocol features listed in MODEL_FEATURES. None means that they are detected."""
        if self.features.strip().lower() == _AUTO:
            return None
        return frozenset(cast("Feature", name.lower()) for name in listed(self.features))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not (self.openai_base_url or self.azure_openai_endpoint):
            raise ValueError(
                "OPENAI_BASE_URL or AZURE_OPENAI_ENDPOINT is missing: no model endpoint is configured. "
                "Example: OPENAI_BASE_URL=https://api.openai.com/v1"
            )
        if (self.known_features or frozenset()) - ALL_FEATURES:
            raise ValueError(
                f"MODEL_FEATURES contains an unknown feature. Known features: "
                f"{', '.join(sorted(ALL_FEATURES))}. "
                "Example: MODEL_FEATURES=auto"
            )
        return self


class TelemetrySettings(SettingsGroup):
    """Traces and metrics. OpenTelemetry and Azure define the names of these variables."""

    otlp_endpoint: HttpUrl | None = Field(
        alias="OTEL_EXPORTER_OTLP_ENDPOINT",
        default=None,
        description=(
            "Base URL of an OTLP/HTTP receiver, without /v1/traces. The exporter is not installed in Azure."
        ),
        examples=["http://localhost:4318"],
    )
    otlp_header_list: HeaderList | None = Field(
        alias="OTEL_EXPORTER_OTLP_HEADERS",
        default=None,
        description="Headers for the OTLP receiver as comma-separated name=value pairs; requires https.",
        examples=["x-api-key=KEY"],
        repr=False,
    )
    service_name: str = Field(
        alias="OTEL_SERVICE_NAME",
        default="groundwork",
        min_length=1,
        max_length=100,
        description="Name of the app in traces and metrics.",
    )
    connection_string: InsightsConnection | None = Field(
        alias="APPLICATIONINSIGHTS_CONNECTION_STRING",
        default=None,
        description="Connection string of Application Insights.",
        examples=["InstrumentationKey=…"],
        repr=False,
    )
    authentication_string: str | None = Field(
        alias="APPLICATIONINSIGHTS_AUTHENTICATION_STRING",
        default=None,
        description=(
            "`Authorization=AAD` authenticates with the managed identity; `ClientId=…` selects a "
            "user-assigned one."
        ),
        examples=["Authorization=AAD"],
    )
    trace_sample_ratio: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="Fraction of traces to record, 0 to 1. The caller's traceparent takes precedence.",
    )
    trace_content: bool = Field(
        default=False, description="Whether traces contain prompts and model output. Only for development."
    )

    @property
    def is_on(self) -> bool:
        """Whether an exporter for traces and metrics is configured."""
        return bool(self.otlp_endpoint or self.connection_string)

    @property
    def otlp_headers(self) -> dict[str, str]:
        """Headers listed in OTEL_EXPORTER_OTLP_HEADERS, by lower-case name."""
        pairs = (pair.partition("=") for pair in (self.otlp_header_list or "").split(",") if pair)
        return {name.strip().lower(): value.strip() for name, _, value in pairs}

    @model_validator(mode="after")
    def _check_headers_are_encrypted(self) -> Self:
        if self.otlp_header_list and self.otlp_endpoint and not is_encrypted(self.otlp_endpoint):
            raise ValueError(
                "OTEL_EXPORTER_OTLP_ENDPOINT must use https if OTEL_EXPORTER_OTLP_HEADERS is set. "
                "Example: OTEL_EXPORTER_OTLP_ENDPOINT=https://NAME/otlp"
            )
        return self


class HostSettings(SettingsGroup):
    """Host. Properties of the machine or service that runs the app."""

    azure_client_id: str | None = Field(
        default=None, description="Client id of the app's user-assigned managed identity."
    )
    # Azure's load balancer cuts off a response after 230 s. Clients resume with Last-Event-ID.
    stream_seconds: float = constant(180)
    instance_memory_mb: int = Field(
        default=2048,
        ge=2048,
        description="Memory of an instance in megabytes, set by the deployment.",
    )
    public_url: Origin | None = Field(
        default=None,
        description="URL of the app for links in chats; unset = the host name assigned by Azure.",
        examples=["https://groundwork.contoso.com"],
    )
    website_hostname: str | None = of_the_platform(None)
    website_site_name: str | None = of_the_platform(None)
    website_auth_enabled: bool = of_the_platform(False)

    container_app_name: str | None = of_the_platform(None)
    kubernetes_service_host: str | None = of_the_platform(None)

    @property
    def is_hosted(self) -> bool:
        """Whether the app runs on a hosting platform, where development settings are not allowed."""
        return bool(
            self.in_azure
            or self.website_auth_enabled
            or self.container_app_name
            or self.kubernetes_service_host
        )

    @property
    def in_azure(self) -> bool:
        """Whether the app runs in Azure App Service. Only safety checks may depend on this, never a
        feature.
        """
        return self.website_site_name is not None

    @property
    def public_address(self) -> str | None:
        """The app's public URL without a trailing slash, or None if it is unknown."""
        if self.public_url:
            return self.public_url.rstrip("/")
        return f"https://{self.website_hostname}" if self.website_hostname else None
