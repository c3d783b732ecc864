"""Scenarios of dependent calls: each creates a resource, then follows the links in the API description.

The users take turns: one creates a resource and follows links in random order. Deletions come last, and
deleted resources are requested again. Sometimes the other user tries a link first, which must fail with "not
found". The seed determines all choices; ids and times come from the app.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import schemathesis
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.core.transport import Response

from evals.fuzz.generating import AnyCase, cases_of
from evals.fuzz.sending import TIMEOUT_S, Seen, case_text, complaints_of, keep_to_one_line
from evals.fuzz.things import Things

# Number of links followed per scenario, in addition to the deletion.
_FOLLOWED = 5
# Share of links that the other user tries first and must not be allowed to follow.
_FOREIGN_SHARE = 0.25
# Share of requests with a plausible body. The app rejects most generated bodies.
_LIKELY_SHARE = 0.8
_UPLOAD = "upload_document"
# Time limit for a deletion to take effect on a busy machine, in seconds. It usually takes about 0.1 s.
_MOMENTS_S = 20.0
# Number of cases generated for each call. They are generated once and reused.
_POOL = 12

Json = dict[str, Any]


@dataclass
class Told:
    """The results of all scenarios. `foreign` counts calls by the other user, `gone` requests for deleted
    resources.
    """

    seen: list[Seen] = field(default_factory=list)
    links: Counter[str] = field(default_factory=Counter)
    scenarios: int = 0
    foreign: int = 0
    gone: int = 0

    @property
    def body(self) -> Json:
        """Return the counts as JSON."""
        return {
            "scenarios": self.scenarios,
            "calls": len(self.seen),
            "followed_links": sum(self.links.values()),
            "foreign_tries": self.foreign,
            "looked_for_deleted": self.gone,
            "links": dict(sorted(self.links.items())),
        }


@dataclass(frozen=True)
class Person:
    """A user of the API, with the token for their requests."""

    name: str
    token: str


class Player:
    """A runner of random scenarios against one app."""

    def __init__(self, document: Mapping[str, Any], url: str, things: Things, seed_number: int) -> None:
        """Read the operations from the API description `document`. `things` contains ids of both users'
        resources, for request bodies.
        """
        self.told = Told()
        self._url = url
        self._things = things
        self._chance = random.Random(f"scenarios {seed_number}")
        schema = schemathesis.openapi.from_dict(dict(document))
        operations = (one.ok() for one in schema.get_all_operations() if isinstance(one, Ok))
        self._operations = {one.definition.raw["operationId"]: one for one in operations}
        self._pools: dict[str, list[AnyCase]] = {}
        self._seed = seed_number

    def play(self, tokens: Mapping[str, str], count: int) -> Told:
        """Play `count` scenarios and return the results. The two users take turns as owner."""
        people = [Person(name, tokens[name]) for name in sorted(tokens)]
        makers = sorted(name for name, one in self._operations.items() if _has_links(one.definition.raw))
        for number in range(count):
            owner, other = people[number % 2], people[1 - number % 2]
            self.told.scenarios += 1
            self._scenario(makers[number // 2 % len(makers)], owner, other)
        return self.told

    def _scenario(self, maker: str, owner: Person, other: Person) -> None:
        case = self._case(maker)
        is_likely = self._chance.random() < _LIKELY_SHARE
        if is_likely and maker == _UPLOAD:
            answer = self._upload(case, owner)
        else:
            if is_likely:
                make_likely(maker, case, self._things, self._chance)
            answer = self._send(case, owner)
        if answer is None:
            return
        links = list(_links(self._operations[maker].definition.raw, answer))
        self._chance.shuffle(links)
        deletions = [one for one in links if self._method(one[0]) == "delete"]
        others = [one for one in links if one not in deletions][:_FOLLOWED]
        for name, parameters in others:
            self._follow(name, parameters, owner, other)
        for name, parameters in deletions[:1]:
            if self._follow(name, parameters, owner, other):
                self._look_for_deleted(name, parameters, owner)

    def _follow(self, name: str, parameters: Mapping[str, str], owner: Person, other: Person) -> bool:
        """Call the operation that a link names, sometimes first as the other user. Return whether the owner's
        call succeeded.
        """
        self.told.links[name] += 1
        case = self._case(name, parameters)
        if self._chance.random() < _FOREIGN_SHARE:
            self.told.foreign += 1
            self._send(case, other, must_fail="answered with {} to another user")
        return self._send(case, owner) is not None

    def _look_for_deleted(self, deletion: str, parameters: Mapping[str, str], owner: Person) -> None:
        path = self._operations[deletion].path
        readers = [name for name, one in self._operations.items() if (one.path, one.method) == (path, "get")]
        for name in readers:
            self.told.gone += 1
            self._wait_until_gone(self._case(name, parameters), owner)

    def _wait_until_gone(self, case: AnyCase, owner: Person) -> None:
        """Request a deleted resource until it is gone. If it still exists after the time limit, record a
        complaint.
        """
        until = time.monotonic() + _MOMENTS_S
        while time.monotonic() < until and self._send(case, owner) is not None:
            time.sleep(0.5)
        self._send(case, owner, must_fail="answered with {} after its deletion")

    def _case(self, name: str, parameters: Mapping[str, str] | None = None) -> AnyCase:
        """Return a valid request for an operation, chosen from a pool that is generated once."""
        if name not in self._pools:
            cases = cases_of(self._operations[name], GenerationMode.POSITIVE, _POOL, f"{self._seed} {name}")
            for case in cases[::2]:
                # The header is dropped, because the generator can't know a matching etag.
                case.headers.pop("If-Match", None)
            self._pools[name] = cases
        case = self._chance.choice(self._pools[name])
        case.path_parameters.update(parameters or {})
        keep_to_one_line(case)
        return case

    def _send(self, case: AnyCase, person: Person, must_fail: str | None = None) -> Any | None:
        """Send a request and record complaints about the response. Return the response if the call succeeded,
        otherwise None.
        """
        name = case.operation.definition.raw["operationId"]
        try:
            answer = case.call(base_url=self._url, headers=_headers(person), timeout=TIMEOUT_S)
        except OSError as failed:
            problem = f"no answer: {type(failed).__name__}"
            self.told.seen.append(Seen(name, person.name, True, None, (problem,), case_text(case)))
            return None
        return self._heard(case, person, answer, must_fail)

    def _upload(self, case: AnyCase, person: Person) -> Any | None:
        """Upload a small Markdown file with a unique name. Generated bytes would not be a readable file."""
        number = self._chance.randrange(10**9)
        files = {"file": (f"valve-{number}.md", f"# Valve {number}\n\nIt is opened by hand.".encode())}
        request = httpx.Request("POST", f"{self._url}/documents", files=files, headers=_headers(person))
        # Load the body of the request, which the response check needs.
        request.read()
        with httpx.Client(timeout=TIMEOUT_S) as client:
            answer = client.send(request)
        return self._heard(case, person, Response.from_any(answer), None)

    def _heard(self, case: AnyCase, person: Person, answer: Any, must_fail: str | None) -> Any | None:
        name = case.operation.definition.raw["operationId"]
        complaints = complaints_of(case, answer)
        if must_fail is not None and answer.status_code < 400:
            complaints.append(must_fail.format(answer.status_code))
        seen = Seen(name, person.name, True, answer.status_code, tuple(complaints), case_text(case))
        self.told.seen.append(seen)
        return answer if answer.status_code < 300 else None

    def _method(self, name: str) -> str:
        method: str = self._operations[name].method
        return method


def make_likely(maker: str, case: AnyCase, things: Things, chance: random.Random) -> None:
    """Replace the body of a request by a plausible one if the operation rejects nearly all generated
    bodies.
    """
    bodies: dict[str, Json] = {
        "chat": {
            "question": chance.choice(("How are valves opened?", "How often is the seal changed?")),
            "stream": chance.random() < 0.5,
        },
        "create_summary": {"doc_ids": [things.choose("doc_id", chance)]},
        "create_thread": {"title": "valves"},
    }
    if maker in bodies:
        case.body = bodies[maker]
        # The app would reject a reused key with a different body.
        case.headers.pop("Idempotency-Key", None)


def _headers(person: Person) -> dict[str, str]:
    return {"Authorization": f"Bearer {person.token}"}


def _has_links(call: Json) -> bool:
    return any(response.get("links") for response in call["responses"].values())


def _links(call: Json, answer: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield operation id and parameters of each link that the API description defines for a response."""
    response: Json = call["responses"].get(str(answer.status_code), {})
    for link in response.get("links", {}).values():
        values = {name: _value(place, answer) for name, place in link["parameters"].items()}
        if all(values.values()):
            yield link["operationId"], {name: str(value) for name, value in values.items()}


def _value(place: str, answer: Any) -> str | None:
    """Return the header or body field of a response that an OpenAPI runtime expression names."""
    kind, _, name = place.removeprefix("$response.").partition(".")
    if kind == "header":
        values: Sequence[str] = answer.headers.get(name.lower(), ())
        return values[0] if values else None
    field_name = place.partition("#/")[2]
    body = answer.json()
    value = body.get(field_name) if isinstance(body, dict) else None
    return value if isinstance(value, str) else None
