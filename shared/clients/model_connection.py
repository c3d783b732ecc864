"""How the model endpoint is reached: one openai client per process, for Azure OpenAI or its likes."""

from typing import TYPE_CHECKING

from shared.clients.connection import Connection
from shared.clients.credentials import Credentials, credential_modules
from shared.settings import Settings

if TYPE_CHECKING:
    from openai import AsyncAzureOpenAI, AsyncOpenAI

_AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"
_NO_KEY = "none"  # the SDK insists on one; servers that want none do not look


def connect_model(settings: Settings, credentials: Credentials) -> "Connection[AsyncOpenAI]":
    """The client; it is made, and openai imported, on first use."""

    def make() -> "AsyncOpenAI":
        if settings.azure_openai_endpoint:
            return _azure(settings, settings.azure_openai_endpoint, credentials)
        from openai import AsyncOpenAI

        # Retries are ours (retrying.py): the SDK's would add up beyond the limit of a call.
        return AsyncOpenAI(
            base_url=settings.openai_base_url, api_key=settings.openai_api_key or _NO_KEY, max_retries=0
        )

    in_azure = settings.azure_openai_endpoint is not None
    return Connection(
        make, ("openai", *(credential_modules(settings.azure_openai_api_key) if in_azure else ()))
    )


def _azure(settings: Settings, endpoint: str, credentials: Credentials) -> "AsyncAzureOpenAI":
    from openai import AsyncAzureOpenAI

    version = settings.azure_openai_api_version
    if settings.azure_openai_api_key:
        return AsyncAzureOpenAI(
            azure_endpoint=endpoint,
            api_version=version,
            api_key=settings.azure_openai_api_key,
            max_retries=0,
        )
    from azure.identity.aio import get_bearer_token_provider

    identity = credentials.identity(endpoint, "AZURE_OPENAI_API_KEY")
    return AsyncAzureOpenAI(
        azure_endpoint=endpoint,
        api_version=version,
        azure_ad_token_provider=get_bearer_token_provider(identity, _AZURE_SCOPE),
        max_retries=0,
    )
