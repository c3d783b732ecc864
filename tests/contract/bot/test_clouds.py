"""Microsoft's clouds: what the SDK knows of them is what stands in our table."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from microsoft_agents.hosting.core.authorization.authentication_constants import (
    AuthenticationConstants as Known,
)

from shared.clients.bot_clouds import CLOUDS, CloudName
from shared.clients.bot_files import bot_token
from tests.contract.bot.signing import bot_settings

pytestmark = pytest.mark.contract


def test_issuers_and_keys_are_those_of_the_sdk() -> None:
    assert {name: (cloud.issuer, cloud.keys_url) for name, cloud in CLOUDS.items()} == {
        "public": (Known.AGENTS_SDK_TOKEN_ISSUER, Known.PUBLIC_ABS_JWKS_URL),
        "usgov": (Known.GOV_AGENTS_SDK_TOKEN_ISSUER, Known.GOV_ABS_JWKS_URL),
    }


def test_no_host_is_in_two_clouds() -> None:
    public, government = (set(cloud.hosts) for cloud in CLOUDS.values())
    assert public.isdisjoint(government)


@dataclass
class AskedCredentials:
    """An identity that keeps what it was asked for."""

    scopes: list[str] = field(default_factory=list)
    token: str = "ours"

    def for_bot(self) -> Any:
        return self

    async def get_token(self, scope: str) -> "AskedCredentials":
        self.scopes.append(scope)
        return self


@pytest.mark.parametrize("name", CLOUDS)
async def test_our_token_is_asked_for_in_the_clouds_own_name(name: CloudName) -> None:
    credentials = AskedCredentials()
    token = bot_token(bot_settings(bot_cloud=name), credentials)  # type: ignore[arg-type]
    assert await token() == "ours"
    assert credentials.scopes == [f"{CLOUDS[name].issuer}/.default"]
