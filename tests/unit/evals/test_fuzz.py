"""Requests from the description: how many of each call, always the same ones, and what is told of answers."""

import collections
import json
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from evals.fuzz.generating import SLOW, requests, shares
from evals.fuzz.report import as_text, is_clean, report
from evals.fuzz.sending import Seen, Sender
from evals.fuzz.things import Things
from functions.http.openapi.description import Description
from functions.http.openapi.registry import OPERATIONS

FEW = ("create_thread", "get_threads", "get_thread", "answer_run", "get_health")
NAMES = sorted(operation.name for operation in OPERATIONS)


def seen(name: str = "chat", status: int | None = 200, *complaints: str) -> Seen:
    return Seen(name, "anna", True, status, complaints, "POST /chat")


@pytest.mark.parametrize("cases", [1, len(NAMES), 200, 5000])
def test_shares_add_up(cases: int) -> None:
    given_out = shares(NAMES, cases)
    assert sum(given_out.values()) == cases
    assert min(given_out.values()) >= (2 if cases >= 2 * len(NAMES) else 0)


def test_slow_calls_get_less() -> None:
    given_out = shares(NAMES, 5000)
    assert set(NAMES) >= SLOW
    slowest = max(given_out[name] for name in SLOW)
    assert slowest * 3 < min(given_out[name] for name in NAMES if name not in SLOW)


def test_the_same_seed_makes_the_same_requests_of_every_call() -> None:
    document = Description([one for one in OPERATIONS if one.name in FEW]).document()
    first, second, other = (requests(document, 20, number) for number in (3, 3, 4))
    assert len(first) == 20
    assert {request.name for request in first} == set(FEW)
    shown = [
        [(one.name, one.case.path_parameters, one.case.body) for one in some] for some in (first, second)
    ]
    assert shown[0] == shown[1]
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
    told = report(some, [seen("memory", 401)])
    assert (told["server_errors"], told["mismatches"], told["no_answer"]) == (1, 2, 1)
    assert told["calls"]["search"] == {"cases": 2, "statuses": {"200": 1, "500": 1}, "complained": 2}
    assert not is_clean(told)
    assert "Server error" in as_text(told)


def test_only_answers_as_described_are_clean() -> None:
    assert is_clean(report([seen()], [seen("memory", 401)]))
    assert not is_clean(report([], []))
    assert not is_clean(report([seen()], [seen("memory", 200, "answered with 200 to nobody")]))
    assert not is_clean(report([seen("health", 503)], []))


class _Wrong(BaseHTTPRequestHandler):
    """Fails at one call, keeps to the description at another, and to nothing anywhere else."""

    def _answer(self) -> None:
        answers = {
            "/api/health": (500, {"status": "ok"}),
            "/api/health/ready": (200, {"status": "ok", "failed": {}}),
        }
        status, body = answers.get(self.path.partition("?")[0], (200, {"surprise": 1}))
        content = json.dumps(body).encode()
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _answer  # noqa: N815  # the names that the base class looks for

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # the base class's name
        """Nothing: tests read no log of it."""


@pytest.fixture(name="wrong_app")
def make_wrong_app() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Wrong)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/api"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_app_that_fails_or_answers_otherwise_is_found(wrong_app: str) -> None:
    names = ("get_health", "get_readiness", "get_threads", "create_thread")
    document = Description([one for one in OPERATIONS if one.name in names]).document()
    made = requests(document, 16, 1)
    sender = Sender(wrong_app, {"anna": "x", "ben": "y"}, Things(), 1)
    told = report(
        sender.send_all(made), sender.without_identity(made, frozenset({"get_health", "get_readiness"}))
    )
    calls = told["calls"]
    assert calls["get_readiness"]["complained"] == 0
    for name in set(names) - {"get_readiness"}:
        assert calls[name]["complained"] == calls[name]["cases"] > 0, name
    assert told["server_errors"] == calls["get_health"]["cases"]
    complaints = [complaint for one in told["complaints"] for complaint in one["complaints"]]
    for expected in (
        "Server error",
        "schema",
        "Undocumented status code",
        "answered with 200 to nobody",
    ):
        assert any(expected in complaint for complaint in complaints), (expected, complaints)


def test_an_app_that_is_not_there_is_found() -> None:
    document = Description([one for one in OPERATIONS if one.name == "get_health"]).document()
    nowhere = Sender("http://127.0.0.1:9/api", {"anna": "x"}, Things(), 1)  # the discard port: nobody listens
    told = report(nowhere.send_all(requests(document, 2, 1)), [])
    assert (told["no_answer"], told["statuses"]) == (2, {"None": 2})
    assert not is_clean(told)


def test_things_are_learned_from_answers_and_the_newest_are_kept() -> None:
    things = Things()
    for number in range(50):
        things.learn({"doc_id": f"doc-{number}", "status": "queued"})
    things.learn(["doc_id"])
    chance = random.Random(1)
    chosen = {things.choose("doc_id", chance) for _ in range(500)}
    assert chosen == {f"doc-{number}" for number in range(10, 50)}
    assert things.choose("run_id", chance) is None
