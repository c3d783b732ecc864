"""The app's settings, read once from environment variables. No other module reads the environment.

`make docs` generates docs/settings.md from these fields, and `make infra-check` compares them with the app
settings in infra/bicep. The file is long because it is essentially a table.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Self, TypeVar, cast
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from shared.platform.database_sources import DatabaseSource, database_sources
from shared.platform.errors import ConfigurationError
from shared.platform.language_models.protocol import ALL_FEATURES, Effort, Efforts, Feature
from shared.platform.listed_people import ListedPerson, listed_people

AUTO = "auto"
_CONSTANT, _MODEL_TIMEOUT, _PLATFORM = "constant", "model timeout", "platform"
SUBAGENT_TOOLS = ("retrieve_documents", "query_metadata", "web_search")
_MIN_LETTERS = 10  # required distinct characters in a secret; 32 random hexadecimal digits have 14 on average
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_HEADER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
_HEADER = re.compile(r"\s*[A-Za-z0-9][A-Za-z0-9_-]{0,99}\s*=[\x20-\x2b\x2d-\x7e]*")
_HOST = re.compile(r"\.?[\w-]+(\.[\w-]+)*(:\d{1,5})?")
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def listed(text: str) -> tuple[str, ...]:
    """Split a comma-separated list into items, stripped of white space. Empty items are dropped."""
    return tuple(item for part in text.split(",") if (item := part.strip()))


def _known_timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("not a time zone in the IANA database, such as Europe/Berlin") from None
    return name


TimezoneName = Annotated[str, AfterValidator(_known_timezone)]
"""Name of a time zone in the IANA database, such as `Europe/Berlin`."""


def _databases(text: str) -> str:
    database_sources(text)
    return text


def _people(text: str) -> str:
    listed_people(text)
    return text


def _is_http(address: str) -> bool:
    """Return whether the text is an HTTP(S) URL with a host name and without credentials, query or
    fragment.
    """
    parts = urlsplit(address)
    names_host = parts.scheme in ("http", "https") and bool(parts.hostname)
    return names_host and "@" not in parts.netloc and not parts.query and not parts.fragment


def is_encrypted(address: str) -> bool:
    """Return whether secrets may be sent to the URL: it uses https, or its host is this machine."""
    parts = urlsplit(address)
    return parts.scheme == "https" or parts.hostname in _LOOPBACK


def _checked(is_right: Callable[[str], object], complaint: str) -> AfterValidator:
    """Return a validator that rejects values for which `is_right` is false, with `complaint` as the
    reason.
    """

    def check(value: str) -> str:
        if not is_right(value):
            raise ValueError(complaint)
        return value

    return AfterValidator(check)


_HttpUrl = Annotated[str, _checked(_is_http, "not a valid HTTP(S) URL")]
SafeUrl = Annotated[_HttpUrl, _checked(is_encrypted, "not an https URL")]
_Origin = Annotated[
    SafeUrl, _checked(lambda url: urlsplit(url).path in ("", "/"), "not an https URL without a path")
]
_Addresses = Annotated[
    str,
    _checked(
        lambda text: all(_is_http(address) and is_encrypted(address) for address in listed(text)),
        "not a comma-separated list of https URLs",
    ),
]
_EntraId = Annotated[str, _checked(_GUID.fullmatch, "not an Entra ID GUID")]
_OneEntraId = Annotated[
    str,
    _checked(
        lambda ids: all(map(_GUID.fullmatch, listed(ids))) and len(listed(ids)) <= 1, "not a single GUID"
    ),
]
_Hosts = Annotated[
    str, _checked(lambda hosts: all(map(_HOST.fullmatch, listed(hosts))), "not a list of host names")
]
_Secret = Annotated[str, _checked(lambda secret: len(set(secret)) >= _MIN_LETTERS, "too easy to guess")]
_HeaderName = Annotated[str, _checked(_HEADER_NAME.fullmatch, "not a valid header name")]
HeaderValue = Annotated[str, _checked(str.isprintable, "contains characters that are not allowed in headers")]
_Headers = Annotated[
    str,
    _checked(lambda text: all(map(_HEADER.fullmatch, filter(None, text.split(",")))), "not name=value pairs"),
]
_Insights = Annotated[
    str, _checked(lambda text: "instrumentationkey=" in text.lower(), "not a connection string")
]


def prefixed(prefix: str) -> Callable[[str], str]:
    """Return a function that maps a field name to an environment variable name with this prefix."""
    return lambda field: f"{prefix}{field}".upper()


def constant(value: object, *, alias: str | None = None, is_model_timeout: bool = False) -> Any:
    """Declare a constant: a value that no operator needs to change, but that tests can override like a
    setting.

    Args:
        is_model_timeout: whether MODEL_TIMEOUT_FACTOR applies.
    """
    kind = _MODEL_TIMEOUT if is_model_timeout else _CONSTANT
    return Field(default=value, alias=alias, json_schema_extra={"kind": kind})


def model_timeout(value: float) -> Any:
    """Declare the timeout of a model call in seconds. It is multiplied by MODEL_TIMEOUT_FACTOR."""
    return constant(value, is_model_timeout=True)


def of_the_platform(default: object) -> Any:
    """Declare an environment variable that the hosting platform sets."""
    return Field(default=default, json_schema_extra={"kind": _PLATFORM})


class SettingsGroup(BaseModel):
    """Base class of settings groups. A field is read from the environment variable named by its alias, which
    defaults to the field name in upper case.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,  # error messages must not quote a value, because it may be a key
        alias_generator=prefixed(""),
    )


Group = TypeVar("Group", bound=SettingsGroup)


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
        default=AUTO,
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
        if self.features.strip().lower() == AUTO:
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


class IngestionSettings(SettingsGroup):
    """Ingestion. Limits, parsers and OCR for uploaded files."""

    max_block_tokens: int = Field(
        default=230,
        ge=50,
        le=8000,
        description="Maximum number of tokens per block; 400-500 suits text-embedding-3.",
    )
    metadata_timeout_s: float = model_timeout(60)  # an estimate, not measured
    caption_timeout_s: float = model_timeout(60)  # an estimate, not measured
    max_document_bytes: int = Field(
        default=100_000_000,  # Six such files fit on the temporary disk of an instance (see parser_process).
        gt=0,
        description="Maximum size of a file in bytes.",
    )
    # Enough for about 5,000 dense pages, whose 4.6 million tokens must be embedded.
    max_document_blocks: int = constant(20_000)
    # The host accepts 5,000,000 bytes per request, which include the other fields of the form.
    max_upload_bytes: int = constant(4_000_000)
    # An activity may take 10 minutes, including a parser service or OCR. Small files get less time.
    parse_timeout_s: float = constant(300)
    max_figures: int = Field(
        default=200,
        ge=0,
        le=2000,
        description="Maximum number of figures per document. Each costs one vision model call.",
    )
    ocr_timeout_s: float = Field(
        default=200,
        ge=0,
        le=400,
        description=(
            "Timeout in seconds for OCR of a file with Tesseract, in addition to 300 s for parsing; 0 "
            "= no OCR."
        ),
    )
    ocr_language_folder: str | None = Field(
        default=None,
        description=(
            "Folder with Tesseract language data (`fra.traineddata` …), up to three languages; unset "
            "= English and German."
        ),
    )
    parser_backend: Literal["local", "document_intelligence", "docling"] = Field(
        default="local",
        description=(
            "Parser for PDFs and images. `document_intelligence` and `docling` are external services."
        ),
    )
    text_recognition: Literal["tesseract", "document_intelligence"] = Field(
        default="tesseract",
        description="OCR engine for pages without text, if PARSER_BACKEND is local.",
    )
    # The sum with PARSE_TIMEOUT_S must stay below the host's limit of 10 minutes.
    parser_service_timeout_s: float = constant(180)
    document_intelligence_endpoint: _HttpUrl | None = Field(
        default=None,
        description="URL of the Azure Document Intelligence resource.",
        examples=["https://NAME.cognitiveservices.azure.com"],
    )
    document_intelligence_key: str | None = Field(
        default=None,
        description="API key of the Document Intelligence resource; unset = managed identity.",
        repr=False,
    )
    docling_endpoint: _HttpUrl | None = Field(
        default=None,
        description="URL of docling-serve, for PARSER_BACKEND=docling.",
        examples=["http://docling:5001"],
    )
    docling_api_key: str | None = Field(
        default=None, description="API key of docling-serve, if needed.", repr=False
    )
    default_access: str = Field(
        default="",
        description="Access list of new documents, comma separated; empty = only the owner.",
    )

    @model_validator(mode="after")
    def _check_parser_services(self) -> Self:
        services = (self.parser_backend, self.text_recognition)
        for service, address in (
            ("document_intelligence", self.document_intelligence_endpoint),
            ("docling", self.docling_endpoint),
        ):
            if service in services and not address:
                name = f"{service}_ENDPOINT".upper()
                raise ValueError(f"{name} is missing. It is the URL of the parser service.")
        address, key = self.document_intelligence_endpoint or "", self.document_intelligence_key
        if "document_intelligence" in services and not (
            is_encrypted(address) and (key or address.startswith("https"))
        ):
            raise ValueError(
                "DOCUMENT_INTELLIGENCE_ENDPOINT must use https, because each request contains a key or "
                "token. "
                "A service on this machine may use http with DOCUMENT_INTELLIGENCE_KEY."
            )
        return self


class AnsweringSettings(SettingsGroup):
    """Answers. Limits of planning, retrieval and answering, and the context of prompts."""

    plan_timeout_s: float = model_timeout(10)  # an estimate, not measured
    retrieval_timeout_s: float = constant(60)  # twice the timeout of one search
    web_consent: Literal["ask", "allow", "deny"] = Field(
        default="ask",
        description=(
            "Whether questions may use the web: `ask` = ask once per conversation; `allow` or `deny` "
            "= don't ask."
        ),
    )
    clarification_timeout_s: float = constant(3 * 86400)  # enough for a weekend and one more day
    max_retrieval_attempts: int = constant(2)  # the first search, and a second one to fill gaps
    max_agent_turns: int = constant(6)  # an estimate, not measured
    # Enough for MAX_ANSWER_TOKENS at 50 tokens per second.
    answer_timeout_s: float = model_timeout(90)
    repair_timeout_s: float = model_timeout(10)  # an estimate, not measured
    judge_timeout_s: float = model_timeout(15)  # an estimate, not measured
    max_answer_tokens: int = Field(
        default=4000,  # An answer has about 600 tokens, but hidden reasoning counts too.
        gt=0,
        description="Maximum length of an answer in tokens, including reasoning.",
    )
    answer_blocks: int = constant(10)  # docs/performance.md explains this value
    whole_documents_tokens: int = constant(10_000)  # total of a prompt; fact lookups may use a quarter of it
    prompt_figures: int = Field(
        default=3,
        ge=0,
        le=3,
        description=(
            "Maximum number of figures per prompt (1,000 tokens each); 0 also disables `view_figure`."
        ),
    )
    organisation: str = Field(
        default="an organisation",
        min_length=1,
        max_length=100,
        description="Name of your organisation, as used in prompts.",
        examples=["Contoso Ltd"],
    )
    default_timezone: TimezoneName = Field(
        default="UTC",
        description='Default time zone of questions, for "today".',
        examples=["Europe/Berlin"],
    )
    agents_folder: str = Field(
        default="agents",
        description="Folder with agent files (`NAME.agent.md`), absolute or relative to the app folder.",
        examples=["samples/agents"],
    )
    agent_tools: str = Field(
        default="",
        description="[Optional tools](extend.md#the-tools) to enable, comma separated.",
        examples=["python,file_read,file_write"],
    )
    max_question_chars: int = constant(8000)  # about four pages; longer texts should be uploaded as documents

    @property
    def enabled_tools(self) -> tuple[str, ...]:
        """Names of the tools in AGENT_TOOLS, without duplicates."""
        return tuple(dict.fromkeys(listed(self.agent_tools)))


class ConversationSettings(SettingsGroup):
    """Threads and runs. Retention, sharing and the length of a conversation's history."""

    turns: int = constant(6, alias="CONVERSATION_TURNS")  # older turns are summarised; unmeasured
    turn_summary_timeout_s: float = model_timeout(60)  # unmeasured; turns are summarised in the background
    sharing: bool = Field(
        default=False,
        description="Whether users may share answers and open shared ones.",
    )
    run_retention_days: int = Field(
        default=30,
        ge=1,
        description=(
            "Retention of journals and document summaries in days. Answers are kept with their thread."
        ),
    )
    conversation_file_days: int = Field(
        default=30,
        ge=1,
        description="Days after the last question before a thread's files are deleted. Answers are kept.",
    )


class SummarySettings(SettingsGroup, alias_generator=prefixed("SUMMARY_")):
    """Summaries. Limits of document summaries, which read a document window by window."""

    timeout_s: float = constant(900)  # afterwards, the summary covers only the windows that have been read
    call_timeout_s: float = model_timeout(60)  # enough for 4,000 tokens at 70 tokens per second
    # Smaller windows find more details but need more model calls. Unmeasured.
    window_tokens: int = constant(3000)
    max_windows: int = constant(120)  # limit per document, which allows 360,000 tokens or about 700 pages
    max_tokens: int = Field(
        default=2_000_000,  # enough for 235 windows, i.e. 20 documents of about 50 pages
        ge=20_000,
        description=(
            "Maximum number of tokens per summary, divided equally among its documents. Longer "
            "documents are summarised in part."
        ),
    )
    documents_at_once: int = constant(4)  # unmeasured; a low number leaves model capacity for other users
    # Includes hidden reasoning, like MAX_ANSWER_TOKENS.
    output_tokens: int = constant(4000)


class SubagentSettings(SettingsGroup, alias_generator=prefixed("SUBAGENTS_")):
    """Limits of sub-agents. How many may run, how long, and with which tools."""

    enabled: bool = Field(default=True, description="Whether questions may be delegated to sub-agents.")
    max_per_request: int = Field(
        default=2, ge=0, le=10, description="Maximum number of sub-agents per question."
    )
    max_recursion_depth: int = constant(1)  # sub-agents cannot start sub-agents
    child_timeout_ms: int = constant(30_000)  # an estimate, not measured
    child_max_turns: int = constant(6)  # an estimate, not measured
    child_max_tool_calls: int = constant(16)  # an estimate, not measured
    child_retry_count: int = constant(1)  # an estimate, not measured
    child_retry_backoff_ms: int = constant(750)  # an estimate, not measured
    child_min_latency_ms: int = constant(4_000)  # enough for a search and a short model turn; unmeasured
    # Enough for the first token, 600 tokens at 70 per second, and the commit.
    reserve_latency_ms: int = constant(12_000)
    # 10,000 for whole documents, 4,000 for rules and findings, 4,000 for the answer, and some slack.
    reserve_tokens: int = constant(20_000)
    max_active: int = Field(
        default=20,  # enough for ten questions with two sub-agents each; unmeasured
        ge=0,
        description="Maximum number of concurrent sub-agents of all instances.",
    )
    max_queue_depth: int = constant(20)  # same as the default of `max_active`; unmeasured
    restricted_tools_only: bool = Field(
        default=False, description="Whether sub-agents may only use the tools in SUBAGENTS_RESTRICTED_TOOLS."
    )
    restricted_tools: str = Field(
        default="retrieve_documents,query_metadata",
        description=(
            "Tools of restricted sub-agents, comma separated: retrieve_documents, query_metadata, web_search."
        ),
    )
    compliance_mode: Literal["normal", "strict"] = Field(
        default="normal",
        description=(
            "strict = sub-agents may only use the tools in SUBAGENTS_RESTRICTED_TOOLS, and never the web."
        ),
    )
    sensitive_departments: str = Field(
        default="",
        description="Departments whose documents must not be combined with web search, comma separated.",
        examples=["Human Resources,Legal"],
    )
    degraded_mode: bool = Field(
        default=False, description="Whether sub-agents are temporarily disabled, e.g. during an outage."
    )
    # This value is an estimate, not measured.
    circuit_breaker_failure_rate_threshold: float = constant(
        0.35, alias="CIRCUIT_BREAKER_FAILURE_RATE_THRESHOLD"
    )
    circuit_breaker_window_requests: int = constant(50, alias="CIRCUIT_BREAKER_WINDOW_REQUESTS")
    circuit_breaker_cooldown_seconds: int = constant(300, alias="CIRCUIT_BREAKER_COOLDOWN_SECONDS")

    @property
    def restricted_tool_names(self) -> tuple[str, ...]:
        """Tool names listed in SUBAGENTS_RESTRICTED_TOOLS."""
        return listed(self.restricted_tools)

    @property
    def sensitive_department_names(self) -> tuple[str, ...]:
        """Departments listed in SUBAGENTS_SENSITIVE_DEPARTMENTS, case-folded for comparison."""
        return tuple(name.casefold() for name in listed(self.sensitive_departments))

    @model_validator(mode="after")
    def _check_tools(self) -> Self:
        unknown = [name for name in self.restricted_tool_names if name not in SUBAGENT_TOOLS]
        if unknown:
            raise ValueError(
                f"SUBAGENTS_RESTRICTED_TOOLS contains an unknown tool: {', '.join(unknown)}. "
                "Example: SUBAGENTS_RESTRICTED_TOOLS=retrieve_documents,query_metadata"
            )
        return self


class ThresholdSettings(SettingsGroup):
    """Thresholds of delegation. Retrieval scores that decide whether a question needs sub-agents."""

    # Not measured with real models. docs/models.md explains the scale of scores.
    low_retrieval_confidence_top_score: float = constant(0.62)
    high_confidence_no_delegate_top_score: float = constant(0.78)
    low_score_spread_ambiguity: float = constant(0.08)
    high_score_spread_clarity: float = constant(0.15)


class BudgetSettings(SettingsGroup):
    """Budgets per question. Limits on tokens, money and time."""

    budget_preset: Literal["default", "tight"] = Field(
        default="default",
        description="tight = small budgets; explicit ones take precedence.",
        examples=["tight"],
    )
    max_total_tokens_per_request: int = Field(
        default=120_000, gt=0, description="Maximum number of tokens per question, including its sub-agents."
    )
    max_child_tokens: int = constant(30_000)  # an estimate, not measured
    max_subagent_cost_usd: float = Field(
        default=0.30, ge=0, description="Maximum cost of a question's sub-agents in US dollars."
    )
    max_child_cost_usd: float = constant(0.12)  # an estimate, not measured
    max_total_latency_ms: int = Field(
        default=60_000,
        gt=0,
        description="Maximum time from question to answer in milliseconds.",
    )
    # `reserve_latency_ms` plus the time of a minimal delegated task.
    min_remaining_latency_to_delegate_ms: int = constant(20_000)
    # `reserve_tokens` plus the tokens of one turn with passages.
    min_remaining_tokens_to_delegate: int = constant(26_000)
    # Unmeasured; roughly the cost of one turn of a small model.
    min_remaining_cost_to_delegate_usd: float = constant(0.005)


# These values replace the defaults if BUDGET_PRESET is `tight`.
TIGHT_BUDGETS: Mapping[str, float] = {
    "MAX_TOTAL_TOKENS_PER_REQUEST": 24_000,
    "MAX_CHILD_TOKENS": 8_000,
    "MAX_SUBAGENT_COST_USD": 0.08,
    "MAX_CHILD_COST_USD": 0.03,
    "MAX_TOTAL_LATENCY_MS": 25_000,
    "MIN_REMAINING_LATENCY_TO_DELEGATE_MS": 12_000,
    "MIN_REMAINING_TOKENS_TO_DELEGATE": 8_000,
    "SUBAGENTS_CHILD_TIMEOUT_MS": 15_000,
    "SUBAGENTS_CHILD_MAX_TURNS": 3,
    "SUBAGENTS_RESERVE_LATENCY_MS": 5_000,
    "SUBAGENTS_RESERVE_TOKENS": 6_000,
}


class WebSearchSettings(SettingsGroup, alias_generator=prefixed("WEB_SEARCH_")):
    """Web search. Connection to a search engine."""

    url: SafeUrl | None = Field(
        default=None,
        description="URL of the search engine's API; unset = web search is disabled.",
        examples=["https://NAME/search"],
    )
    engine: Literal["searxng", "brave"] = Field(
        default="searxng",
        description="Type of the search engine; `brave` always sends the key as X-Subscription-Token.",
    )
    key: HeaderValue | None = Field(
        default=None, description="API key of the search engine, if needed.", repr=False
    )
    key_header: _HeaderName = Field(
        default="X-Api-Key",
        description="HTTP header for the API key. Ignored by `brave`.",
        examples=["Authorization"],
    )


class WebPageSettings(SettingsGroup):
    """Web pages. Which public pages agents may read and users may import."""

    web_fetch_hosts: _Hosts = Field(
        default="",
        description="Hosts from which `web_fetch` may read any page, comma separated.",
        examples=["docs.python.org"],
    )

    web_import: bool = Field(
        default=False, description="Whether users may import public web pages as documents."
    )

    @property
    def fetch_hosts(self) -> tuple[str, ...]:
        """Host names listed in WEB_FETCH_HOSTS."""
        return listed(self.web_fetch_hosts)


class SharePointSettings(SettingsGroup, alias_generator=prefixed("SHAREPOINT_")):
    """SharePoint and OneDrive. Libraries to synchronise."""

    libraries: _Addresses = Field(
        default="",
        description=(
            "Sites, libraries, folders or OneDrives to synchronise, comma separated. Requires "
            "ALLOWED_TENANTS."
        ),
        examples=["https://contoso.sharepoint.com/sites/hr/Shared%20Documents"],
    )

    @property
    def addresses(self) -> tuple[str, ...]:
        """URLs listed in SHAREPOINT_LIBRARIES."""
        return listed(self.libraries)


class DatabaseSettings(SettingsGroup):
    """Databases. External databases that users can query."""

    databases: Annotated[str, AfterValidator(_databases)] = Field(
        default="",
        description="PostgreSQL databases that users can query, as a JSON list "
        "([format](ingestion.md#databases)).",
        repr=False,
    )

    @property
    def sources(self) -> tuple[DatabaseSource, ...]:
        """Databases listed in DATABASES."""
        return database_sources(self.databases)


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


class TelemetrySettings(SettingsGroup):
    """Traces and metrics. OpenTelemetry and Azure define the names of these variables."""

    otlp_endpoint: _HttpUrl | None = Field(
        alias="OTEL_EXPORTER_OTLP_ENDPOINT",
        default=None,
        description=(
            "Base URL of an OTLP/HTTP receiver, without /v1/traces. The exporter is not installed in Azure."
        ),
        examples=["http://localhost:4318"],
    )
    otlp_header_list: _Headers | None = Field(
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
    connection_string: _Insights | None = Field(
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


class BotSettings(SettingsGroup, alias_generator=prefixed("BOT_")):
    """Bot. Connection to Azure Bot Service, for use in Teams."""

    app_id: _EntraId | None = Field(
        default=None,
        description="Client id of the Azure Bot; unset = no bot.",
        examples=["00000000-0000-0000-0000-000000000000"],
    )
    tenant_id: _EntraId | None = Field(
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
    attachment_host_list: _Hosts = Field(
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

    allowed_tenants: _OneEntraId = Field(
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
    graph_endpoint: _Origin = Field(
        default="https://graph.microsoft.com",
        description="URL of Microsoft Graph.",
        examples=["https://graph.microsoft.us"],
    )
    # Unmeasured. A page of results takes a few tenths of a second, and a user is waiting for it.
    graph_timeout_s: float = constant(5)
    local_directory: Annotated[str, AfterValidator(_people)] = Field(
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
    owner_id_key: _Secret = Field(
        min_length=32,
        description=(
            "Secret for pseudonymous owner ids, at least 32 random characters. Never change it: "
            "erasing a person would miss older conversations."
        ),
        examples=["the output of: openssl rand -hex 32"],
        repr=False,
    )
    dev_token_secret: _Secret | None = Field(
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
    public_url: _Origin | None = Field(
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


class Settings(BaseModel):
    """All settings of the app, by group."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    search: SearchSettings
    storage: StorageSettings
    models: ModelSettings
    ingestion: IngestionSettings
    answering: AnsweringSettings
    conversations: ConversationSettings
    summaries: SummarySettings
    subagents: SubagentSettings
    thresholds: ThresholdSettings
    budgets: BudgetSettings
    web_search: WebSearchSettings
    web_pages: WebPageSettings
    sharepoint: SharePointSettings
    databases: DatabaseSettings
    limits: LimitSettings
    telemetry: TelemetrySettings
    bot: BotSettings
    identity: IdentitySettings
    host: HostSettings
    variables: Mapping[str, object] = Field(default_factory=dict, repr=False)
    """Other environment variables, by lower-case name. Optional tools read their settings from these."""

    def group(self, kind: type[Group]) -> Group:
        """Return a settings group that is not a field of this class, such as the settings of an optional
        tool.

        Raises:
            ConfigurationError: one line for each missing or invalid variable.
        """
        names = [field.alias or "" for field in kind.model_fields.values()]
        values = {name: self.variables[name.lower()] for name in names if name.lower() in self.variables}
        try:
            return kind.model_validate(values)
        except ValidationError as invalid:
            raise _configuration_error(invalid, _fields_of([kind])) from None

    @classmethod
    def of(cls, values: Mapping[str, object] | None = None, /, **more_values: object) -> Self:
        """Create settings from values by environment variable name, ignoring case.

        Raises:
            ValidationError: a value is missing or invalid.
            KeyError: there is no setting with one of these names.
        """
        places = {
            (field.alias or "").lower(): (group, field.alias or "")
            for group, kind in setting_groups().items()
            for field in kind.model_fields.values()
        }
        by_group: dict[str, dict[str, object]] = {group: {} for group in setting_groups()}
        others = {name.lower() for name in _fields_of(SettingsGroup.__subclasses__())} - places.keys()
        lowered = {name.lower(): value for name, value in {**(values or {}), **more_values}.items()}
        if lowered.get("budget_preset") == "tight":
            lowered = {name.lower(): value for name, value in TIGHT_BUDGETS.items()} | lowered
        variables = {name: value for name, value in lowered.items() if name in others}
        for name, value in lowered.items():
            if name not in others:
                group, variable = places[name]
                by_group[group][variable] = value
        settings = cls.model_validate({**by_group, "variables": variables})
        factor = settings.models.timeout_factor
        if factor == 1:
            return settings
        return cls.model_validate({**_with_longer_timeouts(by_group, factor), "variables": variables})

    def changed(self, **new_values: object) -> Self:
        """Return a copy with new values for some settings, given by environment variable name, ignoring
        case.
        """
        values = {
            (info.alias or "").lower(): getattr(getattr(self, group), field)
            for group, kind in setting_groups().items()
            for field, info in kind.model_fields.items()
        }
        copy = self.of({**values, **{name.lower(): value for name, value in new_values.items()}})
        return copy.model_copy(update={"variables": {**self.variables, **copy.variables}})

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        total_ms, reserved_ms = self.budgets.max_total_latency_ms, self.subagents.reserve_latency_ms
        if total_ms <= reserved_ms:
            raise ValueError(
                f"MAX_TOTAL_LATENCY_MS ({total_ms}) must exceed {reserved_ms}, the time for answering."
            )
        if self.host.is_hosted and (self.identity.dev_token_secret or self.bot.local_anonymous):
            raise ValueError(
                "DEV_TOKEN_SECRET and BOT_LOCAL_ANONYMOUS are only for development. Remove them from hosted "
                "deployments."
            )
        if self.sharepoint.addresses and not self.identity.tenants:
            raise ValueError(
                "SHAREPOINT_LIBRARIES requires ALLOWED_TENANTS, which defines who belongs to the "
                "organisation."
            )
        for variable, address in self._addresses_with_keys():
            if not is_encrypted(address):
                raise ValueError(f"{variable} receives a key, so it must use https or name this machine.")
        return self

    def _addresses_with_keys(self) -> Iterator[tuple[str, str]]:
        """Yield the variable name and URL of each configured endpoint that receives a key."""
        models, ingestion, storage = self.models, self.ingestion, self.storage
        for variable, address, key in (
            ("AZURE_SEARCH_ENDPOINT", self.search.endpoint, self.search.api_key),
            ("OPENAI_BASE_URL", models.openai_base_url, models.openai_api_key),
            ("AZURE_OPENAI_ENDPOINT", models.azure_openai_endpoint, models.azure_openai_api_key),
            ("DOCLING_ENDPOINT", ingestion.docling_endpoint, ingestion.docling_api_key),
            ("TABLES_ENDPOINT", storage.tables_endpoint, storage.tables_key),
        ):
            if address and key:
                yield variable, address
        parts = (part.partition("=") for part in (storage.connection_string or "").split(";"))
        said = {name.strip().lower(): value.strip() for name, _, value in parts}
        endpoints = [value for name, value in said.items() if name.endswith("endpoint")]
        if said.get("defaultendpointsprotocol", "").lower() == "http" and not endpoints:
            endpoints = ["http://core.windows.net"]
        yield from (("DocumentsStorage", endpoint) for endpoint in endpoints)


def _with_longer_timeouts(
    by_group: Mapping[str, Mapping[str, object]], factor: float
) -> dict[str, dict[str, object]]:
    """Return the values of each group with all model timeouts multiplied by `factor`. Timeouts that are set
    explicitly keep their value.
    """
    longer = {
        group: {
            str(field.alias): field.default * factor
            for field in kind.model_fields.values()
            if _kind_of(field) == _MODEL_TIMEOUT
        }
        for group, kind in setting_groups().items()
    }
    return {group: {**longer[group], **values} for group, values in by_group.items()}


def _kind_of(field: FieldInfo) -> str | None:
    """Return the kind of a field that operators don't set, such as a constant. Return None for a setting."""
    extra = field.json_schema_extra
    return str(extra["kind"]) if isinstance(extra, dict) else None


def setting_groups() -> dict[str, type[SettingsGroup]]:
    """Return the settings groups by field name of `Settings`. The groups of optional tools are not
    included.
    """
    fields = {name: field.annotation for name, field in Settings.model_fields.items()}
    return {
        name: kind
        for name, kind in fields.items()
        if isinstance(kind, type) and issubclass(kind, SettingsGroup)
    }


def setting_fields() -> dict[str, FieldInfo]:
    """Return all fields that operators can set, keyed by environment variable."""
    groups = setting_groups().values()
    return {name: field for group in groups for name, field in settings_of(group).items()}


def settings_of(kind: type[SettingsGroup]) -> dict[str, FieldInfo]:
    """Return the fields of a group that operators can set, keyed by environment variable."""
    return {name: field for name, field in _fields_of([kind]).items() if _kind_of(field) is None}


def _all_fields() -> dict[str, FieldInfo]:
    return _fields_of(setting_groups().values())


def _fields_of(kinds: Iterable[type[SettingsGroup]]) -> dict[str, FieldInfo]:
    return {field.alias or "": field for kind in kinds for field in kind.model_fields.values()}


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read and validate the settings from environment variables.

    If DEV_TOKEN_SECRET is set, as in development, environment variables can also override constants. Tests
    that start the app in a separate process rely on this.

    Raises:
        ConfigurationError: one line for each missing or invalid variable, with its purpose and an example.
    """
    fields = setting_fields()
    nonempty = {name: value for name, value in environment.items() if value}
    kinds = {None, _PLATFORM}
    if "DEV_TOKEN_SECRET" in nonempty:
        kinds |= {_CONSTANT, _MODEL_TIMEOUT}
    names = {variable.lower() for variable, field in _all_fields().items() if _kind_of(field) in kinds}
    values = {name: value for name, value in nonempty.items() if name.lower() in names}
    others = {name.lower(): value for name, value in nonempty.items() if name.lower() not in names}
    try:
        return Settings.of(values).model_copy(update={"variables": others})
    except ValidationError as invalid:
        raise _configuration_error(invalid, fields) from None


def _configuration_error(invalid: ValidationError, fields: Mapping[str, FieldInfo]) -> ConfigurationError:
    errors = invalid.errors()
    lines = [_explain(error["loc"], error["msg"].removeprefix("Value error, "), fields) for error in errors]
    return ConfigurationError("\n".join(lines))


def _explain(location: tuple[int | str, ...], message: str, fields: Mapping[str, FieldInfo]) -> str:
    """Return a line that describes an invalid variable, its purpose and an example."""
    for variable, field in fields.items():
        if location and location[-1] == variable:
            value = field.examples[0] if field.examples else field.default
            example = str(value).lower() if isinstance(value, bool) else value
            suffix = f" Example: {variable}={example}" if isinstance(example, str | int | float) else ""
            return f"{variable}: {message}. {field.description}{suffix if example != '' else ''}"
    return message


@cache
def get_settings() -> Settings:
    """Return the settings of this process. The environment is read on the first call."""
    return load_settings()
