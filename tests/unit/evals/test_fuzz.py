"""Tests for fuzzing from the API description: reproducible requests per operation, and the report."""

import collections
from collections.abc import Iterator

import pytest

from evals.fuzz.generating import requests
from evals.fuzz.report import as_text, is_clean, report
from evals.fuzz.sending import Seen, Sender
from evals.fuzz.things import Things
from functions.http.openapi.description import describe_operations
from tests.api_routes import api_operations
from tests.http_server import Answer, HttpServer, Request, json_answer

FEW = ("create_thread", "get_threads", "get_thread", "answer_run", "get_health")


def seen(name: str = "chat", status: int | None = 200, *complaints: str) -> Seen:
    return Seen(name, "anna", True, status, complaints, "POST /chat")


def test_the_same_seed_makes_the_same_requests_of_every_call() -> None:
    document = describe_operations([one for one in api_operations() if one.name in FEW])
    first, second, other = (requests(document, 20, number) for number in (3, 3, 4))
    assert len(first) == 20
    assert {request.name for request in first} == set(FEW)
    cases = [
        [(one.name, one.case.path_parameters, one.case.body) for one in some] for some in (first, second)
    ]
    assert cases[0] == cases[1]
    assert [one.name for one in first] != [one.name for one in other]
    kinds = collections.Counter(request.is_valid for request in first)
    assert min(kinds[True], kinds[False]) > 4


def test_errors_of_the_server_and_other_complaints_are_told_apart() -> None:
    some = [
        seen(),
        seen("search", 500, "Server error"),
        seen("search", 200, "schema"),
        seen("chat", None, "no"),
    ]
    summary = report(some, [seen("memory", 401)])
    assert (summary["server_errors"], summary["mismatches"], summary["no_answer"]) == (1, 2, 1)
    assert summary["calls"]["search"] == {"cases": 2, "statuses": {"200": 1, "500": 1}, "complained": 2}
    assert not is_clean(summary)
    assert "Server error" in as_text(summary)


def test_only_answers_as_described_are_clean() -> None:
    assert is_clean(report([seen()], [seen("memory", 401)]))
    assert not is_clean(report([], []))
    assert not is_clean(report([seen()], [seen("memory", 200, "status 200 instead of 401")]))
    assert not is_clean(report([seen("health", 503)], []))


def respond_wrongly(request: Request) -> Answer:
    """Fail for one operation, follow the description for another, and violate it for all others."""
    path = request.target.partition("?")[0]
    if path == "/api/health":
        return json_answer({"status": "ok"}, 500)
    return json_answer({"status": "ok", "failed": {}} if path == "/api/health/ready" else {"surprise": 1})


@pytest.fixture(name="wrong_app")
def make_wrong_app() -> Iterator[str]:
    with HttpServer(respond_wrongly) as server:
        yield f"{server.url}/api"


def test_an_app_that_fails_or_answers_otherwise_is_found(wrong_app: str) -> None:
    names = ("get_health", "get_readiness", "get_threads", "create_thread")
    document = describe_operations([one for one in api_operations() if one.name in names])
    generated_requests = requests(document, 16, 1)
    sender = Sender(wrong_app, {"anna": "x", "ben": "y"}, Things(), 1)
    summary = report(
        sender.send_all(generated_requests),
        sender.without_identity(generated_requests, frozenset({"get_health", "get_readiness"})),
    )
    calls = summary["calls"]
    assert calls["get_readiness"]["complained"] == 0
    for name in set(names) - {"get_readiness"}:
        assert calls[name]["complained"] == calls[name]["cases"] > 0, name
    assert summary["server_errors"] == calls["get_health"]["cases"]
    complaints = [complaint for one in summary["complaints"] for complaint in one["complaints"]]
    for expected in (
        "Server error",
        "schema",
        "Undocumented status code",
        "status 200 instead of 401",
    ):
        assert any(expected in complaint for complaint in complaints), (expected, complaints)
