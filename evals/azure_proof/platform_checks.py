"""Proof steps about the platform: sign-in, headers, cold start, time between steps, and throttling."""

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import httpx

from evals.azure_proof.client import AppClient, is_last
from evals.azure_proof.evidence import Outcome, check
from evals.azure_proof.target import NotHereError, World
from local.run_all.api_client import StreamEvent

FACT = "What is the maximum operating pressure of the Heron 400?"
_CONTENT_INDEX = "content-blocks"
_ODD_HEADER_S = 15.0
# Maximum time in seconds until a warm app has planned the question and sends the first event.
_FIRST_EVENT_S = 5.0
_COLD_S = 60.0
# Number of requests in a burst. The default rate limit is 60 per minute.
_REQUESTS = 90
_AT_ONCE = 10
_PRINCIPAL = "X-MS-CLIENT-PRINCIPAL"
# The JSON object {} in Base64.
_NO_CLAIMS = "e30="


def platform(world: World) -> Outcome:
    """Check the registered functions, sign-in with and without a valid identity, and unusual headers."""
    target = world.target
    with world.client() as client:
        count, registered = target.functions()
        me = client.call("GET", "/api/me")
        anonymous = client.send("GET", "/api/documents", signed_in=False)
        forged = client.send("GET", "/api/me", signed_in=False, headers={_PRINCIPAL: _NO_CLAIMS})
        dotted = client.send("GET", "/web/%2e%2e/api/me", signed_in=False, headers={_PRINCIPAL: _NO_CLAIMS})
        page = client.send("GET", "/web", signed_in=False)
        health = [_odd_header(client), client.send("GET", "/api/health", signed_in=False).status_code]
    name = str(me.get("name") or "")
    return Outcome(
        checks=(
            check(f"the platform finds all {registered} functions", count, passed=count == registered),
            check("the app identifies the user", name or me["user_id"], passed=bool(me["user_id"])),
            check("without a token: 401", anonymous.status_code, passed=anonymous.status_code == 401),
            check("with a forged identity: 401", forged.status_code, passed=forged.status_code == 401),
            check(
                "with a forged identity below a public path: access denied",
                dotted.status_code,
                passed=dotted.status_code in (400, 401, 403, 404),
            ),
            check("the page's shell is public", page.status_code, passed=page.status_code == 200),
            check(
                "the app still responds after a request with a non-ASCII header",
                f"{health[0]}, then {health[1]}",
                passed=health[1] == 200,
            ),
        ),
        figures={"letters beyond ASCII in the person's name": sum(not letter.isascii() for letter in name)},
        notes=() if not name.isascii() else ("Repeat this step as a person with an umlaut in the name.",),
    )


def search_scores(world: World) -> Outcome:
    """Check that the search service returns text and vector scores of hybrid hits, on which the app's
    thresholds depend.
    """
    try:
        rows = world.target.hybrid_scores(_CONTENT_INDEX, FACT)
    except NotHereError as reason:
        return Outcome(notes=(f"Skipped: {reason}",))
    complete = [row for row in rows if _has(row, "text") and _has(row, "vectors")]
    return Outcome(
        checks=(
            check(
                "hits show a text score and a vector score",
                f"{len(complete)} of {len(rows)}",
                passed=bool(complete),
            ),
        ),
        notes=(f"The first hit: {rows[0]}" if rows else "There was no hit.",),
    )


def pace(world: World) -> Outcome:
    """Measure the time to the first event of a warm app, and the time between steps of a run."""
    with world.client() as client:
        streams = [_time_events(client) for _ in range(3)]
    first = statistics.median(events[0][0] for events in streams)
    hops = [gap for events in streams for gap in _hops(events)]
    ended = [events[-1][1].name for events in streams]
    return Outcome(
        checks=(
            check("three questions complete", ", ".join(ended), passed=set(ended) == {"complete"}),
            check(
                f"the first event comes within {_FIRST_EVENT_S:.0f} s",
                f"{first:.2f} s",
                passed=first < _FIRST_EVENT_S,
            ),
        ),
        figures={
            "median seconds to the first event": round(first, 2),
            "median seconds from one step to the next": round(statistics.median(hops), 2) if hops else "none",
            "hops measured": len(hops),
        },
        notes=(
            "A hop is the time from the last event of a step to the first one of the next, at the reader.",
        ),
    )


def cold_start(world: World) -> Outcome:
    """Wait until the app is cold, then time the first event of a question."""
    world.target.cool_down()
    time.sleep(world.pause_s)
    with world.client() as client:
        began = time.monotonic()
        health = client.call("GET", "/api/health", patience_s=_COLD_S, signed_in=False)
        answered_s = time.monotonic() - began
        events = _time_events(client)
    return Outcome(
        checks=(
            check(f"a cold app answers within {_COLD_S:.0f} s", health, passed=answered_s < _COLD_S),
            check(
                "its first question completes", events[-1][1].name, passed=events[-1][1].name == "complete"
            ),
        ),
        figures={
            "seconds of idleness before": world.pause_s,
            "seconds to the first response": round(answered_s, 2),
            "seconds to the first event of a question": round(events[0][0], 2),
        },
    )


def throttling(world: World) -> Outcome:
    """Check that requests over the rate limit are refused with a proper error, and that later requests
    succeed.
    """
    with world.client() as client:
        # Fetch the token before the measurement starts.
        client.call("GET", "/api/me")
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = list(pool.map(lambda _: _search(client), range(_REQUESTS)))
        refused = [answer for answer in answers if answer.status_code == httpx.codes.TOO_MANY_REQUESTS]
        others = {answer.status_code for answer in answers} - {200, 429}
        waits = [answer.headers.get("Retry-After", "") for answer in refused]
        again = client.call("POST", "/api/search", patience_s=90, json={"query": "relief valve", "top_k": 1})
    return Outcome(
        checks=(
            check("some requests are rejected", f"{len(refused)} of {_REQUESTS}", passed=bool(refused)),
            check("each rejection has a Retry-After header", set(waits) or "none", passed=all(waits)),
            check("there are no other errors", others or "none", passed=not others),
            check("later requests succeed", f"{len(again['results'])} hits", passed=True),
        ),
        figures={"rejected requests": f"{len(refused)} of {_REQUESTS}"},
    )


def _odd_header(client: AppClient) -> Any:
    """Send a request with a non-ASCII header, and return the status or the name of the error. The official
    host may never respond to it.
    """
    headers = [(b"X-Proof", "ä".encode())]
    try:
        return httpx.get(f"{client.url}/api/health", headers=headers, timeout=_ODD_HEADER_S).status_code
    except httpx.HTTPError as failed:
        return type(failed).__name__


def _has(row: dict[str, Any], part: str) -> bool:
    vectors = row.get("vectors") or {}
    scores = vectors.get("subscores") or {}
    return bool(scores.get(part))


def _time_events(client: AppClient) -> list[tuple[float, StreamEvent]]:
    """Ask a factual question, and return its events with the seconds since the request."""
    began = time.monotonic()
    events = []
    for event in client.stream(FACT):
        events.append((time.monotonic() - began, event))
        if is_last(event):
            break
    return events


def _hops(events: list[tuple[float, StreamEvent]]) -> list[float]:
    return [
        after - before
        for (before, one), (after, other) in pairwise(events)
        if other.data.get("step", 0) > one.data.get("step", 0) > 0
    ]


def _search(client: AppClient) -> httpx.Response:
    return client.send("POST", "/api/search", json={"query": "relief valve", "top_k": 1})
