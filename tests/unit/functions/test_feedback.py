"""Tests for feedback and opened sources over HTTP: own runs only, and the last rating counts."""

import asyncio
from datetime import datetime
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from shared.access.models import UserContext
from shared.answering.inline import run_to_end
from shared.answering.runs import begin_run
from shared.erasure.threads import erase_run
from shared.platform.errors import NotFoundError
from shared.platform.names import RUN_LOG
from shared.quality import recording
from shared.quality.recording import note_opening
from shared.runs.models import ChatRequest, FeedbackBody, RunRequest
from shared.runs.run_files import answer_path
from shared.wiring import Services
from tests.fakes.stores import InMemoryRunStore
from tests.fakes.stores_quality import InMemoryQualityStore
from tests.unit.functions.http_app import IngestingClient, as_user, connect, make_app, problem_of
from tests.unit.functions.http_app import settings_of_tests as settings
from tests.world import ANNA, BEN, corpus_services

QUESTION = "At what pressure does the pump run?"


@pytest.fixture
async def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    return connect(monkeypatch, await corpus_services(settings=settings(subagents_enabled=False)))


@pytest.fixture
def app(services: Services) -> ASGIApp:
    return make_app(IngestingClient(services))


async def start_run(services: Services, **more: Any) -> RunRequest:
    return await begin_run(ChatRequest(question=QUESTION, **more), ANNA, services)


async def answered(services: Services, **more: Any) -> RunRequest:
    request = await start_run(services, **more)
    await run_to_end(request.run_id, services)
    return request


async def measured(app: ASGIApp, **query: str) -> dict[str, Any]:
    response = await as_user(app, "olga", roles=["admin"]).get("/metrics/quality", params=query)
    assert response.status_code == 200, response.text
    metrics: dict[str, Any] = response.json()
    return metrics


async def stop(run_id: str) -> None:
    pass


def kinds(services: Services) -> list[str]:
    assert isinstance(services.quality, InMemoryQualityStore)
    return sorted(record.kind for record in services.quality.records.values())


async def test_a_rating_is_kept_shown_and_counted(
    services: Services, anna: httpx.AsyncClient, app: ASGIApp
) -> None:
    request = await answered(services)
    rating = {"rating": 4, "thumb": "up", "reasons": ["well_sourced"], "comment": "  Good. "}
    put = await anna.put(f"/runs/{request.run_id}/feedback", json=rating)
    stored_rating = put.json()
    assert put.status_code == 200
    datetime.fromisoformat(stored_rating.pop("given_at"))
    assert stored_rating == {**rating, "comment": "Good."}
    assert (await anna.get(f"/runs/{request.run_id}/feedback")).json() == put.json()
    assert (await anna.get(f"/runs/{request.run_id}")).json()["feedback"] == put.json()
    messages = (await anna.get(f"/threads/{request.thread_id}/messages")).json()["messages"]
    assert [message["feedback"] for message in messages] == [put.json()]
    ratings = (await measured(app))["ratings"]
    assert (ratings["rated"], ratings["average"], ratings["thumbs_up"], ratings["comments"]) == (1, 4, 1, 1)


async def test_the_last_rating_counts(services: Services, anna: httpx.AsyncClient, app: ASGIApp) -> None:
    request = await answered(services)
    for body in ({"rating": 5, "comment": "Great."}, {"thumb": "down", "reasons": ["wrong"]}):
        assert (await anna.put(f"/runs/{request.run_id}/feedback", json=body)).status_code == 200
    stored_rating = (await anna.get(f"/runs/{request.run_id}/feedback")).json()
    assert (stored_rating["rating"], stored_rating["thumb"], stored_rating["comment"]) == (None, "down", None)
    ratings = (await measured(app))["ratings"]
    assert (ratings["rated"], ratings["average"], ratings["comments"]) == (1, None, 0)
    assert ratings["reasons"] == {"wrong": 1}


async def test_a_rating_can_be_taken_back(services: Services, anna: httpx.AsyncClient, app: ASGIApp) -> None:
    request = await answered(services)
    await anna.put(f"/runs/{request.run_id}/feedback", json={"rating": 1})
    for _ in range(2):
        assert (await anna.delete(f"/runs/{request.run_id}/feedback")).status_code == 204
    assert problem_of(await anna.get(f"/runs/{request.run_id}/feedback")) == (404, "NotFoundError")
    assert (await anna.get(f"/runs/{request.run_id}")).json()["feedback"] is None
    assert (await measured(app))["ratings"]["rated"] == 0


async def test_a_run_that_has_not_ended_cannot_be_rated(services: Services, anna: httpx.AsyncClient) -> None:
    request = await start_run(services)
    refused = await anna.put(f"/runs/{request.run_id}/feedback", json={"rating": 1})
    assert problem_of(refused) == (409, "ConflictError")
    assert kinds(services) == []


async def test_nobody_rates_reads_or_opens_for_another(services: Services, ben: httpx.AsyncClient) -> None:
    run = f"/runs/{(await answered(services)).run_id}"
    before = kinds(services)
    for refused in (
        await ben.put(f"{run}/feedback", json={"rating": 1}),
        await ben.get(f"{run}/feedback"),
        await ben.delete(f"{run}/feedback"),
        await ben.post(f"{run}/openings", json={"n": 1}),
        await ben.put("/runs/nobodys/feedback", json={"rating": 1}),
    ):
        assert problem_of(refused) == (404, "NotFoundError")
    assert kinds(services) == before


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"comment": "words alone"},
        {"rating": 0},
        {"rating": 6},
        {"rating": True},
        {"rating": "5"},
        {"rating": 4.5},
        {"thumb": "sideways"},
        {"rating": 3, "reasons": ["because"]},
        {"rating": 3, "comment": "x" * 2001},
        {"rating": 3, "comment": "   "},
        {"rating": 3, "user_id": "ben"},
    ],
)
async def test_strange_ratings_are_refused(
    body: dict[str, Any], services: Services, anna: httpx.AsyncClient
) -> None:
    request = await answered(services)
    refused = await anna.put(f"/runs/{request.run_id}/feedback", json=body)
    assert problem_of(refused) == (400, "InvalidRequestError")


async def test_each_source_counts_once_and_each_answer_once(
    services: Services, anna: httpx.AsyncClient, app: ASGIApp
) -> None:
    first, second = await answered(services), await answered(services)
    for _ in range(2):
        opened = await anna.post(f"/runs/{first.run_id}/openings", json={"n": 1})
        assert (opened.status_code, opened.content) == (204, b"")
    assert kinds(services).count("opening") == 1
    rate = (await measured(app))["measures"]["click_through_rate"]
    assert rate == {"value": 0.5, "of": 2, "better": "lower", "aim": 0.3, "met": False}
    assert problem_of(await anna.post(f"/runs/{second.run_id}/openings", json={"n": 2}))[0] == 404
    for strange in ({"n": 0}, {"n": "1"}, {"n": True}, {}):
        assert problem_of(await anna.post(f"/runs/{first.run_id}/openings", json=strange))[0] == 400


async def test_a_source_that_is_opened_while_the_answer_is_written_counts(services: Services) -> None:
    request = await answered(services)
    assert isinstance(services.runs, InMemoryRunStore)
    ended = services.runs.records[request.run_id]
    await services.runs.replace(ended.model_copy(update={"status": "running"}))
    await note_opening(request.run_id, 1, ANNA, services)
    await note_opening(request.run_id, 2, ANNA, services)
    assert kinds(services).count("opening") == 1


@pytest.mark.parametrize(
    ("run_id", "n", "user"),
    [
        ("", 1, ANNA),
        ("nobodys", 1, ANNA),
        ("../x", 1, ANNA),
        (None, 1, BEN),
        (None, 2, ANNA),
        (None, -1, ANNA),
    ],
)
async def test_an_address_that_was_made_up_counts_nothing_and_raises_nothing(
    run_id: str | None, n: int, user: UserContext, services: Services
) -> None:
    request = await answered(services)
    await note_opening(request.run_id if run_id is None else run_id, n, user, services)
    assert "opening" not in kinds(services)


async def test_noting_an_opening_never_raises(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(InMemoryRunStore):
        async def get(self, run_id: str) -> Any:
            await asyncio.sleep(3600)

    monkeypatch.setattr("shared.quality.recording.NOTE_LIMIT_S", 0.05)
    slow = await corpus_services(runs=Hanging())
    await note_opening("some-run", 1, ANNA, slow)
    request = await answered(services)
    await services.blobs.delete(RUN_LOG, answer_path(request.run_id))
    await note_opening(request.run_id, 1, ANNA, services)


async def test_what_a_person_wrote_goes_with_the_thread(services: Services, anna: httpx.AsyncClient) -> None:
    request = await answered(services)
    await anna.put(f"/runs/{request.run_id}/feedback", json={"rating": 1, "comment": "my own words"})
    await erase_run(request.run_id, services, stop, is_last=True)
    assert problem_of(await anna.get(f"/runs/{request.run_id}/feedback"))[0] == 404
    assert isinstance(services.quality, InMemoryQualityStore)
    assert "my own words" not in str(services.quality.records)


async def test_a_rating_that_meets_its_runs_erasure_leaves_nothing(services: Services) -> None:
    request = await answered(services)

    class Erasing(InMemoryQualityStore):
        async def put_rating(self, rating: Any) -> None:
            await super().put_rating(rating)
            await services.runs.delete(request.run_id)

    store = Erasing()
    meanwhile = await corpus_services(runs=services.runs, quality=store)
    with pytest.raises(NotFoundError):
        await recording.rate_run(request.run_id, FeedbackBody(rating=1), ANNA, meanwhile)
    assert store.records == {}


async def test_the_measures_are_for_administrators(anna: httpx.AsyncClient) -> None:
    assert problem_of(await anna.get("/metrics/quality")) == (403, "AccessDeniedError")


async def test_the_measures_of_one_project(services: Services, app: ASGIApp) -> None:
    await answered(services)
    await answered(services, project_id="pumps")
    metrics = await measured(app, project_id="pumps", hours="1")
    assert (metrics["project_id"], metrics["answers"]["runs"]) == ("pumps", 1)
    assert (await measured(app))["answers"]["runs"] == 2


@pytest.mark.parametrize("hours", ["0", "721", "-1", "1.5", "a", "²"])
async def test_strange_hours_are_refused(hours: str, app: ASGIApp) -> None:
    response = await as_user(app, "olga", roles=["admin"]).get("/metrics/quality", params={"hours": hours})
    assert problem_of(response) == (400, "InvalidRequestError")
