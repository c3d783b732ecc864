"""Microsoft's clouds: the app's table of clouds agrees with the SDK, and each app belongs to one cloud."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from microsoft_agents.hosting.core.authorization.authentication_constants import (
    AuthenticationConstants as Known,
)

from shared.teams.files import bot_token
from shared.teams.tokens import CLOUDS, CloudName
from tests.contract.teams.bot_fixture import keys_from, teams_app
from tests.contract.teams.signing import (
    SERVICE,
    Messages,
    bot_services,
    bot_settings,
    key_answer,
    messages,
    signed,
    teams_message,
)

__all__ = ["teams_app"]

pytestmark = pytest.mark.contract


def test_issuers_and_keys_are_those_of_the_sdk() -> None:
    assert {name: (cloud.issuer, cloud.keys_url) for name, cloud in CLOUDS.items()} == {
        "public": (Known.AGENTS_SDK_TOKEN_ISSUER, Known.PUBLIC_ABS_JWKS_URL),
        "usgov": (Known.GOV_AGENTS_SDK_TOKEN_ISSUER, Known.GOV_ABS_JWKS_URL),
    }


@dataclass
class AskedCredentials:
    """An identity that records the requested scopes."""

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


GOVERNMENT = "https://api.botframework.us"
GCC_HIGH = "https://smba.infra.gov.teams.microsoft.us/teams"


@pytest.mark.parametrize(
    ("issuer", "service", "status"),
    [
        (GOVERNMENT, GCC_HIGH, 202),
        (GOVERNMENT, "https://smba.infra.dod.teams.microsoft.us/teams", 202),
        (GOVERNMENT, SERVICE, 401),
        ("https://api.botframework.com", GCC_HIGH, 401),
        ("https://api.botframework.com", SERVICE, 401),
    ],
)
async def test_a_bot_of_the_governments_cloud_believes_that_cloud_alone(
    monkeypatch: pytest.MonkeyPatch, issuer: str, service: str, status: int
) -> None:
    async with keys_from(key_answer("msteams")) as (keys, _):
        app = messages(monkeypatch, bot_services(keys, bot_settings(bot_cloud="usgov")))
        token = signed(iss=issuer, serviceurl=service)
        assert (await app.post(teams_message(serviceUrl=service), token)).status_code == status
        assert len(app.handled) == (status == 202)


async def test_a_bot_of_the_public_cloud_believes_no_host_of_the_governments(teams_app: Messages) -> None:
    answered = await teams_app.post(teams_message(serviceUrl=GCC_HIGH), signed(serviceurl=GCC_HIGH))
    assert answered.status_code == 401
