"""The services we depend on, as messages name them: a name, and which settings or roles to check."""

from dataclasses import dataclass

from shared.settings import Settings


@dataclass(frozen=True)
class Dependency:
    """What an error says of a service; no values of settings, only their names.

    Attributes:
        name: with its article: "the search service".
        endpoint_setting: the variable that says where it is.
        access_hint: one sentence for whoever can grant access.
    """

    name: str
    endpoint_setting: str
    access_hint: str


SEARCH = Dependency(
    "the search service",
    "AZURE_SEARCH_ENDPOINT",
    "Check AZURE_SEARCH_API_KEY; without a key the app's identity needs the roles "
    "Search Index Data Contributor and Search Service Contributor.",
)
BLOBS = Dependency(
    "the blob storage",
    "DocumentsStorage or DocumentsStorage__blobServiceUri",
    "Check DocumentsStorage; without a connection string the app's identity needs the role "
    "Storage Blob Data Contributor.",
)
BLOB_SIGNING = Dependency(
    "the blob storage's signing key",
    "DocumentsStorage or DocumentsStorage__blobServiceUri",
    "Check DocumentsStorage; without a key the app's identity needs the role Storage Blob Delegator.",
)
QUEUES = Dependency(
    "the queue storage",
    "DocumentsStorage or DocumentsStorage__queueServiceUri",
    "Check DocumentsStorage; without a connection string the app's identity needs the role "
    "Storage Queue Data Contributor.",
)
TABLES = Dependency(
    "the table storage",
    "DocumentsStorage or DocumentsStorage__tableServiceUri, or TABLES_ENDPOINT",
    "Check DocumentsStorage, or TABLES_KEY; without a key the app's identity needs the role "
    "Storage Table Data Contributor, or Cosmos DB Built-in Data Contributor.",
)
DOCUMENT_INTELLIGENCE = Dependency(
    "the Document Intelligence resource",
    "DOCUMENT_INTELLIGENCE_ENDPOINT",
    "Check DOCUMENT_INTELLIGENCE_KEY; without a key the app's identity needs the role "
    "Cognitive Services User.",
)
WEB_SEARCH = Dependency(
    "the web search",
    "WEB_SEARCH_URL",
    "Check WEB_SEARCH_KEY and WEB_SEARCH_KEY_HEADER; SearXNG itself refuses until `json` is among its "
    "search.formats.",
)
GRAPH = Dependency(
    "the directory (Microsoft Graph)",
    "GRAPH_ENDPOINT",
    "The app's identity needs the application permissions GroupMember.Read.All and User.Read.All of "
    "Microsoft Graph; or set GROUP_OVERAGE to what shall happen without.",
)
BOT_KEYS = Dependency(
    "the Bot Service's list of keys",
    "the way out of the network to login.botframework.com",
    "It is open to everybody; a proxy on the way may not be.",
)
BOT_FILES = Dependency(
    "the channel's file store",
    "BOT_ATTACHMENT_HOSTS",
    "Files of Teams come with their own permission, which ends after some minutes: drop the file again.",
)
BOT_CHANNEL = Dependency(
    "the chat channel",
    "the way out of the network to the Bot Service",
    "The bot may have been removed there; its identity (BOT_APP_ID) must be the Azure Bot's own.",
)
DOCLING = Dependency("the docling service", "DOCLING_ENDPOINT", "Check DOCLING_API_KEY.")


def model_endpoint(settings: Settings) -> Dependency:
    """The model endpoint in use: Azure OpenAI when its endpoint is set, else any compatible one."""
    if settings.azure_openai_endpoint:
        return Dependency(
            "the Azure OpenAI resource",
            "AZURE_OPENAI_ENDPOINT",
            "Check AZURE_OPENAI_API_KEY; without a key the app's identity needs the role "
            "Cognitive Services OpenAI User.",
        )
    return Dependency("the model endpoint", "OPENAI_BASE_URL", "Check OPENAI_API_KEY.")
