"""Tests for the local stand-in for App Service Authentication: who gets a cookie, and its scope."""

from collections.abc import Mapping

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from local.host.sign_in import COOKIE, LOGIN, LOGOUT, SECRET_SETTING, SignIn

SECRET = {SECRET_SETTING: "a secret of this machine alone, long enough"}


async def _seen(request: Request) -> Response:
    return JSONResponse({"authorization": request.headers.get("authorization")})


def browser(environment: Mapping[str, str] = SECRET, host: str = "127.0.0.1:7071") -> httpx.AsyncClient:
    app = SignIn(Starlette(routes=[Route("/api/me", _seen)]), environment)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{host}")


async def test_whoever_is_chosen_is_signed_in() -> None:
    async with browser() as client:
        choice = await client.get(f"{LOGIN}?post_login_redirect_uri=/%3Fthread%3Dt1")
        assert 'value="anna"' in choice.text
        done = await client.post(f"{LOGIN}?post_login_redirect_uri=/%3Fthread%3Dt1", data={"user": "anna"})
        assert (done.status_code, done.headers["location"]) == (303, "/?thread=t1")
        cookie = done.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        seen = (await client.get("/api/me")).json()["authorization"]
        assert seen == f"Bearer {client.cookies[COOKIE]}"
        out = await client.get(LOGOUT)
        assert out.status_code == 302
        assert (await client.get("/api/me")).json() == {"authorization": None}


async def test_a_token_that_the_request_carries_stays() -> None:
    async with browser() as client:
        headers = {"Authorization": "Bearer own", "Cookie": f"{COOKIE}=other"}
        assert (await client.get("/api/me", headers=headers)).json() == {"authorization": "Bearer own"}


@pytest.mark.parametrize("target", ["https://evil.example", "//evil.example", "/\\evil.example"])
async def test_nobody_is_led_to_another_site(target: str) -> None:
    async with browser() as client:
        done = await client.post(LOGIN, params={"post_login_redirect_uri": target}, data={"user": "anna"})
        assert done.headers["location"] == "/"


async def test_markup_in_the_address_stays_text() -> None:
    async with browser() as client:
        response = await client.get(f"{LOGIN}?a=%22><script>alert(1)</script>")
        assert "<script>" not in response.text


@pytest.mark.parametrize(
    ("environment", "host"), [(SECRET, "rebound.example"), ({}, "127.0.0.1:7071"), (SECRET, "[bad")]
)
async def test_elsewhere_nothing_is_added(environment: dict[str, str], host: str) -> None:
    async with browser(environment) as client:
        headers = {"Cookie": f"{COOKIE}=token", "Host": host}
        assert (await client.get("/api/me", headers=headers)).json() == {"authorization": None}
        assert (await client.get(LOGIN, headers=headers)).status_code == 404


async def test_nobody_signs_in_as_a_stranger_or_from_another_page() -> None:
    async with browser() as client:
        assert (await client.post(LOGIN, data={"user": "mallory"})).status_code == 400
        foreign = {"Sec-Fetch-Site": "cross-site"}
        assert (await client.post(LOGIN, data={"user": "anna"}, headers=foreign)).status_code == 405
