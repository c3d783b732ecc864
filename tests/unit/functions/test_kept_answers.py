"""What may be kept of answers: nothing that was made for one person, by nobody but that person's browser."""

import httpx
import pytest
from starlette.applications import Starlette

from functions import feedback, memory, runs, threads, users
from shared.wiring import Services
from tests.unit.answering.world import ANNA, world
from tests.unit.conversations.test_threads import ask
from tests.unit.functions.http_app import IngestingClient, as_user, connect, make_app, settings_of_tests


@pytest.fixture
async def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    made = await world(settings=settings_of_tests())
    connect(monkeypatch, made)
    return made


@pytest.fixture
def app(services: Services) -> Starlette:
    return make_app([threads, memory, runs, users, feedback], IngestingClient(services))


async def test_no_cache_between_keeps_an_answer_that_was_made_for_somebody(
    services: Services, app: Starlette
) -> None:
    """A cookie says who asks, where the platform signs people in: to a cache all of them look alike."""
    asked = await ask(services, "At what pressure does the pump run?")
    run_id, thread_id = asked.run_id, asked.thread_id
    anna = as_user(app, ANNA.user_id, groups=list(ANNA.groups))
    paths = (
        "/me",
        "/threads",
        f"/threads/{thread_id}",
        f"/threads/{thread_id}/messages",
        "/memory",
        f"/runs/{run_id}",
        f"/runs/{run_id}/events",
        f"/runs/{run_id}/feedback",
        "/runs/none",
    )
    answers: dict[str, httpx.Response] = {path: await anna.get(path) for path in paths}
    answers["nobody"] = await httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://test/api"
    ).get("/me")
    kept = {path: answer.headers.get("cache-control", "") for path, answer in answers.items()}
    assert {path for path, told in kept.items() if "no-store" not in told and "private" not in told} == set()
    assert {path for path, told in kept.items() if "no-store" not in told} == {f"/threads/{thread_id}"}


async def test_no_browser_takes_an_answer_for_something_else_than_it_says(
    services: Services, app: Starlette
) -> None:
    answer = await as_user(app, ANNA.user_id).get("/threads/none")
    assert answer.headers["x-content-type-options"] == "nosniff"
