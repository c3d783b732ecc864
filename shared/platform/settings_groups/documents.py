"""Settings of the ingestion of documents and of other sources."""

from typing import Literal, Self

from pydantic import Field, model_validator

from shared.platform.database_sources import DatabaseSource, database_sources
from shared.platform.settings_groups.base import SettingsGroup, constant, model_timeout, prefixed
from shared.platform.settings_groups.values import (
    DatabaseList,
    HostList,
    HttpUrl,
    UrlList,
    is_encrypted,
    listed,
)


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
    document_intelligence_endpoint: HttpUrl | None = Field(
        default=None,
        description="URL of the Azure Document Intelligence resource.",
        examples=["https://NAME.cognitiveservices.azure.com"],
    )
    document_intelligence_key: str | None = Field(
        default=None,
        description="API key of the Document Intelligence resource; unset = managed identity.",
        repr=False,
    )
    docling_endpoint: HttpUrl | None = Field(
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


class WebPageSettings(SettingsGroup):
    """Web pages. Which public pages agents may read and users may import."""

    web_fetch_hosts: HostList = Field(
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

    libraries: UrlList = Field(
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

    databases: DatabaseList = Field(
        default="",
        description="PostgreSQL databases that users can query, as a JSON list "
        "([format](ingestion.md#databases)).",
        repr=False,
    )

    @property
    def sources(self) -> tuple[DatabaseSource, ...]:
        """Databases listed in DATABASES."""
        return database_sources(self.databases)
