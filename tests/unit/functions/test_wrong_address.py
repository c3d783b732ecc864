"""Calls that no route takes, and query parameters that no call knows."""

import httpx
import pytest

from functions import api_page, health, memory, runs, site, threads, wrong_address
from tests.contract.worker.golden import read_golden
from tests.fakes.services import fake_services
from tests.unit.functions.http_app import IngestingClient, as_user, connect, make_app, settings_of_tests


@pytest.fixture(name="anna")
async def make_caller(monkeypatch: pytest.MonkeyPatch) -> httpx.AsyncClient:
    services = fake_services(settings=settings_of_tests())
    connect(monkeypatch, services)
    modules = [api_page, health, memory, runs, site, threads, wrong_address]
    return as_user(make_app(modules, IngestingClient(services)), "anna")


@pytest.mark.parametrize("path", ["/nothing", "/threads/x/y/z", "/v2/models", "/runs/x/cancel/now"])
async def test_an_unknown_address_is_a_problem(anna: httpx.AsyncClient, path: str) -> None:
    answer = await anna.get(path)
    assert (answer.status_code, answer.json()["title"]) == (404, "NotFoundError")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"]


async def test_a_misspelt_address_is_told_the_nearest(anna: httpx.AsyncClient) -> None:
    assert (await anna.get("/thread")).json()["hints"] == ["Did you mean /api/threads?"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/threads", "GET, POST"),
        ("POST", "/Threads/x", "DELETE, GET, PATCH"),
        ("OPTIONS", "/runs/x/cancel", "POST"),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(
    anna: httpx.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await anna.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == allowed


def test_it_comes_last_in_the_order_in_which_the_host_tries_routes() -> None:
    names = [
        name
        for name, function in read_golden().items()
        if any(binding["type"] == "httpTrigger" for binding in function["bindings"])
    ]
    assert max(names, key=str.lower) == wrong_address.wrong_address._function.get_function_name()


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/threads?limt=5", "Did you mean 'limit'?"),
        ("/threads?limit=5&Limit=6", "Did you mean 'limit'?"),
        ("/memory?of=ben", "Parameters: limit, cursor."),
        ("/runs/x?verbose=1", "This call takes no query parameters."),
        ("/health?x=", "This call takes no query parameters."),
    ],
)
async def test_an_unknown_query_parameter_is_refused(anna: httpx.AsyncClient, path: str, hint: str) -> None:
    answer = await anna.get(path)
    assert answer.status_code == 400
    assert answer.json()["hints"] == [hint]


async def test_what_follows_the_page_s_address_is_its_own(anna: httpx.AsyncClient) -> None:
    assert (await anna.get("http://app/?from=mail")).status_code != 400
