"""Kinds of model endpoints that differ in authentication or lack parts of the protocol."""

import time
from typing import Any

from azure.core.credentials import AccessToken

from shared.platform.connections import Credentials
from tests.fakes.services import fake_settings
from tests.servers import ModelServer


class StaticIdentity:
    """An identity that always returns the same token."""

    def __init__(self, token: str) -> None:
        self._token = token
        self.scopes: list[str] = []

    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        self.scopes += scopes
        return AccessToken(self._token, int(time.time()) + 3600)

    async def close(self) -> None:
        """Do nothing, because no connection is open."""


class StaticCredentials(Credentials):
    """Credentials that send tokens to loopback addresses, where no directory exists."""

    def __init__(self, token: str) -> None:
        super().__init__(fake_settings())
        self.static = StaticIdentity(token)

    def identity(self, endpoint: str, key_setting: str) -> Any:
        return self.static


def shape(name: str, server: ModelServer, **changes: Any) -> dict[str, Any]:
    """Return the settings for the server as the named kind of endpoint."""
    root = server.base_url.removesuffix("/v1")
    kind, _, proof = name.partition(" by ")
    azure = {"azure": root, "azure v1": f"{root}/openai/v1/"}.get(kind)
    key = server.api_key if proof == "key" else None
    if azure is None:
        return {"openai_base_url": server.base_url, "openai_api_key": key, **changes}
    return {
        "openai_base_url": None,
        "azure_openai_endpoint": azure,
        "azure_openai_api_key": key,
        **changes,
    }


SHAPES = [
    "openai by key",
    "azure by key",
    "azure by token",
    "azure v1 by key",
]
KINDS = [
    "",
    "without=json_schema",
    "without=json_schema+json_object,fenced",
    "without=json_object,think",  # such as LM Studio
    "without=tools+json_schema,dialect=router",
    "without=tools+json_schema+json_object,dialect=text",
    "without=max_completion_tokens+stream_options,dialect=pydantic",
    "without=json_schema+json_object+tools+stream_options+max_completion_tokens+system,fenced,think",
    "without=json_schema+json_object+tools+stream_options+max_completion_tokens+max_tokens+system,dialect=pydantic",
    "ignore=json_schema",
    "ignore=json_schema+json_object,fenced",
]
