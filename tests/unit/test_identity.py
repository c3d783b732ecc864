"""Who is believed, and who is not."""

import base64
import json
import time
from typing import Any

import jwt
import pytest

from shared.core.security_filter import principals
from shared.errors import ConfigurationError, NotAuthenticatedError
from shared.identity import ORGANISATION, PUBLIC, authenticate, sign_dev_token
from shared.settings import Settings

SECRET = "s" * 40


def settings(**changes: Any) -> Settings:
    values = {
        "azure_search_endpoint": "http://127.0.0.1:1",
        "DocumentsStorage": "UseDevelopmentStorage=true",
        "openai_base_url": "http://127.0.0.1:2/v1",
        "chat_model": "m",
        "embedding_model": "e",
        "embedding_dimensions": 8,
        **changes,
    }
    return Settings.model_validate(values)


LOCAL = settings(dev_token_secret=SECRET)
AZURE = settings(website_site_name="app", website_auth_enabled=True)


def bearer(**changes: Any) -> dict[str, str]:
    claims = {"sub": "anna", "groups": ["hr"], "exp": int(time.time()) + 60, **changes}
    return {"authorization": f"Bearer {sign_dev_token(claims, SECRET)}"}


def principal(*claims: tuple[str, str]) -> dict[str, str]:
    content = {"auth_typ": "aad", "claims": [{"typ": typ, "val": val} for typ, val in claims]}
    return {"x-ms-client-principal": base64.b64encode(json.dumps(content).encode()).decode()}


def test_a_development_token_names_its_user() -> None:
    user = authenticate(bearer(department="engineering", org_id="acme", roles=["admin"]), LOCAL)
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
def test_anything_else_is_nobody(headers: dict[str, str]) -> None:
    with pytest.raises(NotAuthenticatedError):
        authenticate(headers, LOCAL)


def test_a_token_without_an_end_is_not_signed() -> None:
    with pytest.raises(ConfigurationError):
        sign_dev_token({"sub": "anna"}, SECRET)


@pytest.mark.parametrize("oid", ["oid", "http://schemas.microsoft.com/identity/claims/objectidentifier"])
def test_the_principal_is_read_with_short_and_long_claim_names(oid: str) -> None:
    user = authenticate(principal((oid, "u1"), ("groups", "g1"), ("groups", "g2"), ("tid", "t")), AZURE)
    assert (user.user_id, user.groups, user.org_id) == ("u1", ("g1", "g2"), "t")


def test_too_many_groups_leave_none_rather_than_some() -> None:
    assert authenticate(principal(("oid", "u1"), ("hasgroups", "true")), AZURE).groups == ()


def test_the_principal_counts_only_while_the_platform_authenticates() -> None:
    with pytest.raises(NotAuthenticatedError):
        authenticate(principal(("oid", "u1")), settings(website_site_name="app"))


def test_development_tokens_do_not_count_in_azure() -> None:
    with pytest.raises(NotAuthenticatedError):
        authenticate(bearer(), AZURE)


@pytest.mark.parametrize("header", ["", "%%%", "eyJ4IjoxfQ==", "W10="])
def test_a_principal_that_cannot_be_read_is_nobody(header: str) -> None:
    with pytest.raises(NotAuthenticatedError):
        authenticate({"x-ms-client-principal": header}, AZURE)


def test_a_principal_without_object_id_is_nobody() -> None:
    with pytest.raises(NotAuthenticatedError):
        authenticate(principal(("name", "Anna")), AZURE)


def test_a_name_is_what_the_provider_says_on_one_line_and_not_too_long() -> None:
    assert authenticate(bearer(name="Eva  \n Lind"), LOCAL).name == "Eva Lind"
    assert authenticate(bearer(), LOCAL).name is None
    assert authenticate(principal(("oid", "1"), ("name", "x" * 500)), AZURE).name == "x" * 100


@pytest.mark.parametrize(
    "claim",
    [
        "department",
        "extn.department",
        "extension_department",
        "extension_0123456789abcdef0123456789abcdef_department",
        "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/department",
        "http://schemas.microsoft.com/identity/claims/extn.department",
    ],
)
def test_the_department_of_a_principal_is_read_under_its_usual_names(claim: str) -> None:
    user = authenticate(principal(("oid", "u1"), (claim, " Legal ")), AZURE)
    assert user.department == "Legal"
    assert "Legal" in principals(user)


def test_the_claim_that_carries_the_department_can_be_named() -> None:
    named = settings(website_site_name="app", website_auth_enabled=True, department_claim="division")
    both = principal(("oid", "u1"), ("division", "Legal"), ("department", "Sales"))
    assert authenticate(both, named).department == "Legal"
    assert authenticate(principal(("oid", "u1"), ("department", "Sales")), named).department is None


@pytest.mark.parametrize(
    "claims",
    [
        [],
        [("department", "")],
        [("department", "  ")],
        [("department", "Legal"), ("extn.department", "Sales")],
        [("my_department", "Legal")],
        [("department_head", "Legal")],
        [("http://example.com/department", "Legal")],
        [("department", "*")],
        [("department", "org:t")],
    ],
)
def test_a_department_that_is_not_clear_is_none(claims: list[tuple[str, str]]) -> None:
    assert authenticate(principal(("oid", "u1"), *claims), AZURE).department is None


@pytest.mark.parametrize("name", ["*", "org:fernhill", " org:fernhill", " * "])
def test_nobody_goes_by_a_name_that_stands_for_others(name: str) -> None:
    user = authenticate(bearer(groups=["hr", name], department=name), LOCAL)
    assert (user.groups, user.department) == (("hr",), None)
    with pytest.raises(NotAuthenticatedError):
        authenticate(bearer(sub=name), LOCAL)


def test_the_reserved_names_are_those_of_access_lists() -> None:
    user = authenticate(bearer(org_id="fernhill"), LOCAL)
    assert {PUBLIC, f"{ORGANISATION}fernhill"} <= set(principals(user))
