"""How we prove who we are: a key where one is set, else the managed identity, once per process."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from shared.clients.connection import Connection
from shared.errors import ConfigurationError
from shared.settings import Settings

if TYPE_CHECKING:
    from azure.core.credentials import AzureKeyCredential, AzureNamedKeyCredential
    from azure.identity.aio import DefaultAzureCredential


def credential_modules(key: str | None) -> tuple[str, ...]:
    """What a service's credential imports that takes long: nothing where a key is set."""
    return () if key else ("azure.identity.aio",)


class Credentials:
    """Chooses the credential for each service. azure-identity is imported only when a token is wanted."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._identity: Connection[DefaultAzureCredential] = Connection(self._make_identity)
        self._bot: Connection[DefaultAzureCredential] = Connection(self._make_bot)

    def for_search(self) -> "AzureKeyCredential | DefaultAzureCredential":
        """The key of the search service, else the identity."""
        key = self._settings.azure_search_api_key
        if key:
            from azure.core.credentials import AzureKeyCredential

            return AzureKeyCredential(key)
        return self.identity(self._settings.azure_search_endpoint, "AZURE_SEARCH_API_KEY")

    def for_document_intelligence(self, endpoint: str) -> "AzureKeyCredential | DefaultAzureCredential":
        """The key of the Document Intelligence resource, else the identity."""
        key = self._settings.document_intelligence_key
        if key:
            from azure.core.credentials import AzureKeyCredential

            return AzureKeyCredential(key)
        return self.identity(endpoint, "DOCUMENT_INTELLIGENCE_KEY")

    def for_tables(self, endpoint: str) -> "AzureNamedKeyCredential | DefaultAzureCredential":
        """The key of the account that TABLES_ENDPOINT names, else the identity.

        The account is the first label of the host, or, with an emulator, the path.
        """
        key = self._settings.tables_key
        if key:
            from azure.core.credentials import AzureNamedKeyCredential

            address = urlsplit(endpoint)
            account = address.path.strip("/") or (address.hostname or "").partition(".")[0]
            return AzureNamedKeyCredential(account, key)
        return self.identity(endpoint, "TABLES_KEY")

    def identity(self, endpoint: str, key_setting: str) -> "DefaultAzureCredential":
        """The process's identity, for an endpoint that has no key.

        Raises:
            ConfigurationError: the endpoint is not https, where the SDKs refuse to send tokens.
        """
        if not endpoint.startswith("https://"):
            raise ConfigurationError(
                f"{key_setting} is missing: {endpoint} is not https, and tokens go over https only.",
                f"Set {key_setting}, or use an https endpoint.",
            )
        return self._identity.client()

    def for_directory(self) -> "DefaultAzureCredential":
        """The process's identity: there are no keys. Its address is checked when settings are read."""
        return self._identity.client()

    def for_bot(self) -> "DefaultAzureCredential":
        """The identity of the bot, which may be another than the process's."""
        if self._settings.bot_app_id in (None, self._settings.azure_client_id):
            return self._identity.client()
        return self._bot.client()

    async def close(self) -> None:
        """End the identities' own connections."""
        await self._identity.close()
        await self._bot.close()

    def _make_identity(self) -> "DefaultAzureCredential":
        from azure.identity.aio import DefaultAzureCredential

        return DefaultAzureCredential(managed_identity_client_id=self._settings.azure_client_id)

    def _make_bot(self) -> "DefaultAzureCredential":
        from azure.identity.aio import DefaultAzureCredential

        return DefaultAzureCredential(managed_identity_client_id=self._settings.bot_app_id)
