"""How the model endpoint is reached: one openai client per process, for Azure OpenAI or its likes.

Azure OpenAI has two shapes: paths that name the deployment, with an api-version; and the newer
`/openai/v1`, which is OpenAI's own. Both take a key or a token.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from shared.clients.connection import Connection
from shared.clients.credentials import Credentials, credential_modules
from shared.settings import Settings

if TYPE_CHECKING:
    from openai import AsyncAzureOpenAI, AsyncOpenAI

_AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"
_AZURE_V1 = "/openai/v1"
_NO_KEY = "none"  # the SDK insists on one; servers that want none do not look


def connect_model(settings: Settings, credentials: Credentials) -> "Connection[AsyncOpenAI]":
    """The client; it is made, and openai imported, on first use."""

    def make() -> "AsyncOpenAI":
        if settings.azure_openai_endpoint:
            endpoint = settings.azure_openai_endpoint.rstrip("/")
            return (_azure_v1 if endpoint.endswith(_AZURE_V1) else _azure)(settings, endpoint, credentials)
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
    return AsyncAzureOpenAI(
        azure_endpoint=endpoint,
        api_version=version,
        azure_ad_token_provider=_tokens(endpoint, credentials),
        max_retries=0,
    )


def _azure_v1(settings: Settings, endpoint: str, credentials: Credentials) -> "AsyncOpenAI":
    from openai import AsyncOpenAI

    key = settings.azure_openai_api_key or _tokens(endpoint, credentials)
    return AsyncOpenAI(base_url=endpoint, api_key=key, max_retries=0)


def _tokens(endpoint: str, credentials: Credentials) -> Callable[[], Awaitable[str]]:
    from azure.identity.aio import get_bearer_token_provider

    return get_bearer_token_provider(credentials.identity(endpoint, "AZURE_OPENAI_API_KEY"), _AZURE_SCOPE)
