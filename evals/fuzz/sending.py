"""Sends requests as two users, and holds each answer against the description."""

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
_SHARE_OF_THINGS = 0.8  # of requests with names in the path, how many name something that is, or was, there
_OF_HOST = frozenset({400, 414, 431})  # such as a header in Latin-1; the app's own refusals have a body


@dataclass(frozen=True)
class Seen:
    """What became of one request.

    Attributes:
        status: None = no answer.
        complaints: what is not as described.
        sent: the request, for debugging; without the identity.
    """

    name: str
    user: str
    is_valid: bool
    status: int | None
    complaints: tuple[str, ...]
    sent: str


class Sender:
    """Two users of one app."""

    def __init__(self, url: str, tokens: Mapping[str, str], things: Things, seed_number: int) -> None:
        """`url` ends with `/api`; `tokens` by user."""
        self._url = url
        self._tokens = dict(tokens)
        self._things = things
        self._seed = seed_number

    def send_all(self, requests: Sequence[Request]) -> list[Seen]:
        """All of them, as many at once as there are users."""
        with ThreadPoolExecutor(len(self._tokens)) as pool:
            return list(pool.map(self._send, requests))

    def without_identity(self, requests: Sequence[Request], open_calls: frozenset[str]) -> list[Seen]:
        """One request of each call that is not open, without an identity: nothing but 401 will do."""
        first = {request.name: request for request in requests if request.name not in open_calls}
        told = []
        for request in first.values():
            seen = self._answered(request, "nobody", {"Authorization": ""})
            wrong = () if seen.status == 401 else (f"answered with {seen.status} to nobody",)
            told.append(Seen(**{**vars(seen), "complaints": (*seen.complaints, *wrong)}))
        return told

    def _send(self, request: Request) -> Seen:
        # Everything about a request follows from its number: the order in which threads come by does not.
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
        sent = shown(case)
        try:
            answer = case.call(base_url=self._url, headers=dict(headers), timeout=TIMEOUT_S)
        except OSError as failed:  # all errors of the HTTP library that it uses are of this kind
            return Seen(
                request.name, user, request.is_valid, None, (f"no answer: {type(failed).__name__}",), sent
            )
        if answer.status_code < 300:
            self._learn(answer)
        complaints = tuple(complaints_of(case, answer))
        return Seen(request.name, user, request.is_valid, answer.status_code, complaints, sent)

    def _learn(self, answer: Any) -> None:
        if "json" in answer.headers.get("content-type", [""])[0]:
            self._things.learn(answer.json())


def keep_to_one_line(case: AnyCase) -> None:
    """A path with a line break never reaches the app: the router of the streaming extension matches none."""
    for kind, value in case.path_parameters.items():
        case.path_parameters[kind] = str(value).replace("%0A", "-").replace("\n", "-")


def shown(case: AnyCase) -> str:
    """A request, for debugging; without the identity."""
    return f"{case.method} {case.formatted_path} {case.query or ''} {case.body!r}"[:_MESSAGE_CHARS]


def complaints_of(case: AnyCase, answer: Any) -> list[str]:
    """What of an answer is not as described. What the host refuses itself never reached the app."""
    if answer.status_code in _OF_HOST and not answer.content:
        return []
    try:
        case.validate_response(answer, checks=[_SERVER_ERROR, *_CHECKS])
    except FailureGroup as found:
        return [_told(failure) for failure in found.exceptions]
    except Failure as found:
        return [_told(found)]
    return []


def _told(failure: BaseException) -> str:
    title = getattr(failure, "title", type(failure).__name__)
    return f"{title}: {getattr(failure, 'message', failure)}"[:_MESSAGE_CHARS]
