"""Requests from the description: how many of each call, always the same ones, and what is told of answers."""

import collections

import pytest

from evals.fuzz.generating import SLOW, requests, shares
from evals.fuzz.report import as_text, is_clean, report
from evals.fuzz.sending import Seen
from functions.openapi.description import Description
from functions.openapi.registry import OPERATIONS

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
