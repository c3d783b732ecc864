"""Sends generated requests as two users, and validates each response against the API description."""

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from evals.fuzz.generating import AnyCase, Request
from evals.fuzz.things import Things

_SERVER_ERROR = not_a_server_error
_CHECKS = (
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)
TIMEOUT_S = 60.0
_MESSAGE_CHARS = 600
# Share of path parameters that get the id of a resource which exists or existed.
_SHARE_OF_THINGS = 0.8
# Statuses with which the host itself rejects a request, for example for a Latin-1 header. In contrast,
# responses of the app have a body.
_OF_HOST = frozenset({400, 414, 431})


@dataclass(frozen=True)
class Seen:
    """A request that was sent, with its status and the complaints about its response.

    Attributes:
        status: None without a response.
        complaints: deviations from the description.
        sent: the request without identity, for debugging.
    """

    name: str
    user: str
    is_valid: bool
    status: int | None
    complaints: tuple[str, ...]
    sent: str


class Sender:
    """A client that sends generated requests, alternating between two users."""

    def __init__(self, url: str, tokens: Mapping[str, str], things: Things, seed_number: int) -> None:
        """Create a sender. `url` ends with `/api`, and `tokens` maps user names to tokens."""
        self._url = url
        self._tokens = dict(tokens)
        self._things = things
        self._seed = seed_number

    def send_all(self, requests: Sequence[Request]) -> list[Seen]:
        """Send all requests, with one thread per user, and return the results in order."""
        with ThreadPoolExecutor(len(self._tokens)) as pool:
            return list(pool.map(self._send, requests))

    def without_identity(self, requests: Sequence[Request], open_calls: frozenset[str]) -> list[Seen]:
        """Send a request without authentication to each protected operation. Any status other than 401 is a
        complaint, except that the host refuses a long URL before.
        """
        first = {request.name: request for request in requests if request.name not in open_calls}
        results = []
        for request in first.values():
            seen = self._answered(request, "nobody", {"Authorization": ""})
            wrong = () if seen.status in (401, 414) else (f"status {seen.status} instead of 401",)
            results.append(Seen(**{**vars(seen), "complaints": (*seen.complaints, *wrong)}))
        return results

    def _send(self, request: Request) -> Seen:
        # Choose the user and the ids by the number of the request, so that they don't depend on the
        # scheduling of threads.
        chance = random.Random(self._seed * 1_000_003 + request.number)
        user = sorted(self._tokens)[request.number % len(self._tokens)]
        for kind in request.case.path_parameters:
            thing = self._things.choose(kind, chance)
            if thing is not None and chance.random() < _SHARE_OF_THINGS:
                request.case.path_parameters[kind] = thing
        keep_to_one_line(request.case)
        return self._answered(request, user, {"Authorization": f"Bearer {self._tokens[user]}"})

    def _answered(self, request: Request, user: str, headers: Mapping[str, str]) -> Seen:
        case = request.case
        request_text = case_text(case)
        try:
            answer = case.call(base_url=self._url, headers=dict(headers), timeout=TIMEOUT_S)
        except OSError as failed:
            # OSError is the base class of the HTTP library's exceptions.
            return Seen(
                request.name,
                user,
                request.is_valid,
                None,
                (f"no answer: {type(failed).__name__}",),
                request_text,
            )
        if answer.status_code < 300:
            self._learn(answer)
        complaints = tuple(complaints_of(case, answer))
        return Seen(request.name, user, request.is_valid, answer.status_code, complaints, request_text)

    def _learn(self, answer: Any) -> None:
        if "json" in answer.headers.get("content-type", [""])[0]:
            self._things.learn(answer.json())


def keep_to_one_line(case: AnyCase) -> None:
    """Remove line breaks from the path, because the streaming extension's router doesn't match them."""
    for kind, value in case.path_parameters.items():
        case.path_parameters[kind] = str(value).replace("%0A", "-").replace("\n", "-")


def case_text(case: AnyCase) -> str:
    """Return a request as text for debugging, without its credentials."""
    return f"{case.method} {case.formatted_path} {case.query or ''} {case.body!r}"[:_MESSAGE_CHARS]


def complaints_of(case: AnyCase, answer: Any) -> list[str]:
    """Return descriptions of all deviations of a response from the API description. Responses of the host
    itself are exempt.
    """
    if answer.status_code in _OF_HOST and not answer.content:
        return []
    try:
        case.validate_response(answer, checks=[_SERVER_ERROR, *_CHECKS])
    except FailureGroup as found:
        return [_failure_text(failure) for failure in found.exceptions]
    except Failure as found:
        return [_failure_text(found)]
    return []


def _failure_text(failure: BaseException) -> str:
    title = getattr(failure, "title", type(failure).__name__)
    return f"{title}: {getattr(failure, 'message', failure)}"[:_MESSAGE_CHARS]
