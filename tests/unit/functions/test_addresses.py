"""Tests for requests without a matching route and for unknown query parameters."""

import asyncio
from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI
from openai import NotFoundError as OpenAINotFoundError

from functions.api import app
from functions.http.application import routes_of
from functions.http.openai_models import CompletionBody
from tests.fakes.services import fake_services
from tests.unit.functions.http_app import IngestingClient, as_user, connect, make_app, settings_of_tests


@pytest.fixture(name="anna")
async def make_caller(monkeypatch: pytest.MonkeyPatch) -> httpx.AsyncClient:
    services = fake_services(settings=settings_of_tests())
    connect(monkeypatch, services)
    return as_user(make_app(IngestingClient(services)), "anna")


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
        ("POST", "/threads/x", "DELETE, GET, PATCH"),
        ("OPTIONS", "/runs/x/cancel", "POST"),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(
    anna: httpx.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await anna.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize(
    ("name", "allowed"), [("events", "GET"), ("facets", "GET"), ("import", "POST"), ("uploads", "POST")]
)
@pytest.mark.parametrize("method", ["PATCH", "DELETE", "PUT"])
async def test_a_name_below_the_documents_is_no_document_id(
    anna: httpx.AsyncClient, method: str, name: str, allowed: str
) -> None:
    answer = await anna.request(method, f"/documents/{name}", json={})
    assert answer.status_code == 405
    assert answer.headers["allow"] == allowed


def test_the_ids_of_documents_exclude_every_name_below_the_documents() -> None:
    base = "/api/documents/"
    routes = routes_of(app())
    of_one_document = next(route for route in routes if route.path_format == f"{base}{{doc_id}}")
    names = {route.path.removeprefix(base) for route in routes if route.path.startswith(base)}
    literal = {name for name in names if "{" not in name and "/" not in name}
    assert literal >= {"events", "facets", "import", "uploads"}
    assert [name for name in literal if of_one_document.path_regex.match(base + name)] == []
    assert of_one_document.path_regex.match(f"{base}eventsX")


async def test_a_replaced_run_needs_its_thread(anna: httpx.AsyncClient) -> None:
    refused = await anna.post("/chat", json={"question": "Why?", "replaces": "a" * 32})
    assert refused.status_code == 400
    assert "`replaces` requires `thread_id`" in refused.json()["detail"]


async def test_head_is_answered_like_get_without_a_body(anna: httpx.AsyncClient) -> None:
    head, got = await anna.head("/health"), await anna.get("/health")
    assert (head.status_code, head.content, got.content) == (200, b"", b'{"status":"ok"}')
    assert head.headers["content-length"] == got.headers["content-length"]
    assert (await anna.head("/threads/x/clear")).status_code == 405


async def test_a_head_request_leaves_no_stream_open(anna: httpx.AsyncClient) -> None:
    head = await asyncio.wait_for(anna.head("/documents/events"), timeout=30)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"].startswith("text/event-stream")


async def test_letters_of_an_address_are_told_apart(anna: httpx.AsyncClient) -> None:
    assert (await anna.get("/Threads")).status_code == 404


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/threads?limt=5", "Did you mean 'limit'?"),
        ("/threads?limit=5&Limit=6", "Did you mean 'limit'?"),
        ("/memory?of=ben", "Known parameters: limit, cursor."),
        ("/runs/x?verbose=1", "This route has no query parameters."),
        ("/health?x=", "This route has no query parameters."),
    ],
)
async def test_an_unknown_query_parameter_is_refused(anna: httpx.AsyncClient, path: str, hint: str) -> None:
    answer = await anna.get(path)
    assert answer.status_code == 400
    assert answer.json()["hints"] == [hint]


async def test_what_follows_the_page_s_address_is_its_own(anna: httpx.AsyncClient) -> None:
    assert (await anna.get("http://app/?from=mail")).status_code != 400


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "NotFoundError"),
        ("GET", "/v1/chat/completions", 405, "MethodNotAllowedError"),
        ("GET", "/v1/models?limit=1", 400, "InvalidRequestError"),
        ("POST", "/v1/chat/completions", 400, "InvalidRequestError"),
    ],
)
async def test_errors_in_openais_protocol_have_its_shape(
    anna: httpx.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    answer = await anna.request(method, path, content=b"{}" if method == "POST" else None)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    assert error.keys() == {"message", "type", "code", "param"}
    assert error["type"] == error["code"] == code
    assert error["message"]


COMPLETION = {"model": "groundwork", "messages": [{"role": "user", "content": "What is it?"}]}
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/pump.png"}}


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"n": 2}, "n: "),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "look_up"}}}, "tool_choice"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}, PICTURE]}]}, "image_url"),
    ],
)
async def test_openai_parameters_that_cannot_be_honoured_are_refused(
    anna: httpx.AsyncClient, parameters: dict[str, Any], field: str
) -> None:
    answer = await anna.post("/v1/chat/completions", json={**COMPLETION, **parameters})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "InvalidRequestError")
    assert field in error["message"]


def test_openai_parameters_without_effect_are_accepted() -> None:
    tool = {"type": "function", "function": {"name": "look_up"}}
    harmless = {"n": 1, "temperature": 0, "response_format": {"type": "text"}, "tools": [tool]}
    earlier = {"role": "user", "content": [PICTURE]}
    messages = [earlier, *COMPLETION["messages"]]
    body = CompletionBody.model_validate(
        {**harmless, "tool_choice": "auto", **COMPLETION, "messages": messages}
    )
    assert body.unsupported_types == ()


async def test_openais_client_retrieves_a_model(anna: httpx.AsyncClient) -> None:
    listed = (await anna.get("/v1/models")).json()["data"]
    assert (await anna.get("/v1/models/groundwork")).json() == listed[0]
    unknown = await anna.get("/v1/models/gpt-4o")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "NotFoundError")


async def test_without_an_identity_openais_clients_are_told_in_their_shape(anna: httpx.AsyncClient) -> None:
    del anna.headers["Authorization"]
    answer = await anna.get("/v1/models")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "NotAuthenticatedError")
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_openais_client_says_what_is_wrong(anna: httpx.AsyncClient) -> None:
    token = anna.headers["Authorization"].removeprefix("Bearer ")
    http: Any = anna  # has the type of httpx2, with the same interface
    client = AsyncOpenAI(base_url="http://app/api/v1", api_key=token, http_client=http, max_retries=0)
    with pytest.raises(OpenAINotFoundError, match="no model 'gpt'"):
        await client.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "x"}])
