"""Tests for authentication: accepted and refused credentials."""

import base64
import json
import time
from typing import Any

import jwt
import pytest

from shared.access.admission import ORGANISATION
from shared.access.identity import authenticate as authenticate_with
from shared.access.identity import sign_dev_token
from shared.access.models import UserContext
from shared.access.security_filter import PUBLIC, principals
from shared.platform.errors import ConfigurationError, NotAuthenticatedError
from shared.platform.settings import Settings
from tests.fakes.directory import InMemoryDirectory

pytestmark = pytest.mark.attack("identity")

SECRET = "a secret of this test alone, 0123456789"


def settings(**changes: Any) -> Settings:
    values = {
        "azure_search_endpoint": "http://127.0.0.1:1",
        "DocumentsStorage": "UseDevelopmentStorage=true",
        "openai_base_url": "http://127.0.0.1:2/v1",
        "chat_model": "m",
        "embedding_model": "e",
        "embedding_dimensions": 8,
        "owner_id_key": "ids of people, 0123456789 and letters",
        **changes,
    }
    return Settings.of(values)


LOCAL = settings(dev_token_secret=SECRET)
AZURE = settings(website_site_name="app", website_auth_enabled=True)


def bearer(**changes: Any) -> dict[str, str]:
    claims = {"sub": "anna", "groups": ["hr"], "exp": int(time.time()) + 60, **changes}
    return {"authorization": f"Bearer {sign_dev_token(claims, SECRET)}"}


async def authenticate(headers: dict[str, str], settings: Settings) -> UserContext:
    """Authenticate with an empty directory, as none of the tests needs a lookup."""
    directory = InMemoryDirectory()
    try:
        return await authenticate_with(headers, settings, directory)
    finally:
        assert directory.asked == []


def principal(*claims: tuple[str, str]) -> dict[str, str]:
    content = {"auth_typ": "aad", "claims": [{"typ": typ, "val": val} for typ, val in claims]}
    return {"x-ms-client-principal": base64.b64encode(json.dumps(content).encode()).decode()}


async def test_a_development_token_names_its_user() -> None:
    user = await authenticate(bearer(department="engineering", org_id="acme", roles=["admin"]), LOCAL)
    assert (user.user_id, user.groups, user.department, user.org_id, user.roles) == (
        "anna",
        ("hr",),
        "engineering",
        "acme",
        ("admin",),
    )


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Basic YTpi"},
        {"authorization": "Bearer not.a.token"},
        bearer(exp=int(time.time()) - 3600),
        bearer(sub=""),
        bearer(sub="  "),
        bearer(sub=None),
        bearer(unknown_claim="x"),
        {"authorization": f"Bearer {jwt.encode({'sub': 'anna'}, SECRET, 'HS256')}"},
        {
            "authorization": "Bearer "
            + jwt.encode(
                {"sub": "anna", "iss": "groundwork-dev", "aud": "groundwork", "exp": 9999999999},
                "x" * 40,
                "HS256",
            )
        },
        {
            "authorization": "Bearer "
            + jwt.encode(
                {"sub": "anna", "iss": "groundwork-dev", "aud": "groundwork", "exp": 9999999999},
                "",
                "none",
            )
        },
        principal(("oid", "anna")),
    ],
)
async def test_anything_else_is_nobody(headers: dict[str, str]) -> None:
    with pytest.raises(NotAuthenticatedError):
        await authenticate(headers, LOCAL)


def test_a_token_without_an_end_is_not_signed() -> None:
    with pytest.raises(ConfigurationError):
        sign_dev_token({"sub": "anna"}, SECRET)


async def test_the_principal_counts_only_while_the_platform_authenticates() -> None:
    auth_alone = settings(website_auth_enabled=True)
    for nowhere in (settings(website_site_name="app"), auth_alone, settings(), LOCAL):
        with pytest.raises(NotAuthenticatedError):
            await authenticate(principal(("oid", "u1")), nowhere)


async def test_development_tokens_do_not_count_in_azure() -> None:
    with pytest.raises(NotAuthenticatedError):
        await authenticate(bearer(), AZURE)


async def test_nor_does_a_token_count_beside_a_principal() -> None:
    assert (await authenticate({**bearer(), **principal(("oid", "u1"))}, AZURE)).user_id == "u1"


async def test_a_token_holds_until_its_end_and_no_longer() -> None:
    now = int(time.time())
    assert (await authenticate(bearer(exp=now + 5), LOCAL)).user_id == "anna"
    with pytest.raises(NotAuthenticatedError, match="expired"):
        await authenticate(bearer(exp=now - 31), LOCAL)  # beyond the tolerated clock skew


async def test_a_name_is_what_the_provider_says_on_one_line_and_not_too_long() -> None:
    assert (await authenticate(bearer(name="Eva  \n Lind"), LOCAL)).name == "Eva Lind"
    assert (await authenticate(bearer(), LOCAL)).name is None
    assert (await authenticate(principal(("oid", "1"), ("name", "x" * 500)), AZURE)).name == "x" * 100


@pytest.mark.parametrize("name", ["*", "org:fernhill", " org:fernhill", " * "])
async def test_nobody_goes_by_a_name_that_stands_for_others(name: str) -> None:
    user = await authenticate(bearer(groups=["hr", name], department=name), LOCAL)
    assert (user.groups, user.department) == (("hr",), None)
    with pytest.raises(NotAuthenticatedError):
        await authenticate(bearer(sub=name), LOCAL)


async def test_the_reserved_names_are_those_of_access_lists() -> None:
    user = await authenticate(bearer(org_id="fernhill"), LOCAL)
    assert {PUBLIC, f"{ORGANISATION}fernhill"} <= set(principals(user))
