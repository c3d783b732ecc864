"""Settings: one typed object, made from the environment once. The only module that reads the environment.

Every field's description and its row in docs/settings.md are compared by a test.
"""

from functools import cache
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import SettingsConfigDict

from shared.errors import ConfigurationError
from shared.setting_checks import check_address, check_document_intelligence, explain
from shared.settings_agents import AgentSettings
from shared.settings_bot import BotSettings
from shared.settings_identity import IdentitySettings


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
