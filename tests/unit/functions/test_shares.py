"""Tests for shares over HTTP: recipients see the answer only if they may read all of its sources."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from shared.access.audit_trail import AuditFilter
from shared.answering.inline import run_to_end
from shared.answering.provenance import keep_provenance, stored_provenance
from shared.answering.runs import begin_run
from shared.answering.share_models import SharePointer, StoredShare
from shared.answering.shares import POINTERS, purge_shares
from shared.conversations.threads import clear_thread, delete_thread
from shared.documents.state import DocumentState
from shared.erasure.models import EraseUserTask
from shared.erasure.passes import advance
from shared.erasure.requests import ask_for_erasure
from shared.platform.blobs import read_model, write_model
from shared.platform.names import ERASURES_QUEUE, RUN_LOG, WORK
from shared.runs.models import ChatRequest, RunRequest
from shared.runs.provenance import Obstacle, UsedDocument
from shared.wiring import Services
from tests.fakes.stores import InMemoryTaskQueues
from tests.queued_work import erase_queued
from tests.unit.erasure.erasing_fakes import Orchestrations
from tests.unit.functions.http_app import IngestingClient, as_user, connect, make_app, problem_of
from tests.unit.functions.http_app import settings_of_tests as settings
from tests.world import ANNA, QUESTION, World, remove_row

ANSWER = "It runs at 15 bar."
TENANT = "11111111-1111-1111-1111-111111111111"
OFF = settings(subagents_enabled=False)
Change = Callable[[Services, RunRequest, str], Awaitable[None]]


@pytest.fixture
async def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    world = World(settings=settings(subagents_enabled=False, sharing=True))
    await world.add("manual", "The pump runs at 15 bar.", readers=("engineering",))
    return connect(monkeypatch, world.services)


@pytest.fixture
def app(services: Services) -> ASGIApp:
    return make_app(IngestingClient(services))


@pytest.fixture
def anna(app: ASGIApp) -> httpx.AsyncClient:
    return as_user(app, "anna", groups=["engineering"], name="Anna Bergqvist")


async def answered(services: Services, question: str = QUESTION, **more: Any) -> RunRequest:
    request = await begin_run(ChatRequest(question=question, **more), ANNA, services)
    await run_to_end(request.run_id, services)
    return request


async def shared(anna: httpx.AsyncClient, run: RunRequest, *audience: str, **more: Any) -> str:
    created = await anna.post(f"/runs/{run.run_id}/shares", json={"audience": audience or ["*"], **more})
    assert created.status_code == 201, created.text
    assert created.headers["location"] == f"/api/shares/{created.json()['share_id']}"
    return str(created.json()["share_id"])


def without_id(refused: httpx.Response) -> bytes:
    """Return the body of a problem response without the request id."""
    request_id = refused.headers["x-request-id"].encode()
    return refused.content.replace(request_id, b"ID")


async def test_a_reader_of_everything_sees_the_answer_and_nothing_else_of_the_run(
    services: Services, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    run = await answered(services)
    share = await shared(anna, run, "ben")
    seen = await as_user(app, "ben", groups=["engineering"]).get(f"/shares/{share}")
    assert seen.status_code == 200
    view = seen.json()
    assert (view["question"], view["shared_by"]) == (QUESTION, "Anna Bergqvist")
    assert set(view["answer"]) == {"text", "language", "citations", "figures"}
    assert ANSWER in view["answer"]["text"]
    assert [cited["doc_id"] for cited in view["answer"]["citations"]] == ["manual"]
    for hidden in (run.run_id, run.thread_id, '"anna"', share):
        assert hidden not in seen.text


async def test_an_addressee_without_a_document_sees_the_question_alone(
    services: Services, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    run = await answered(services)
    share = await shared(anna, run, "ben")
    view = (await as_user(app, "ben").get(f"/shares/{share}")).json()
    assert view.pop("expires_at")
    assert view == {"question": QUESTION, "shared_by": "Anna Bergqvist", "answer": None}


async def bump(services: Services, run: RunRequest, share: str) -> None:
    await changed(services, version=7)


async def close(services: Services, run: RunRequest, share: str) -> None:
    state = await state_of(services)
    await changed(services, rights=state.rights.model_copy(update={"acl": ("board",)}))


async def remove(services: Services, run: RunRequest, share: str) -> None:
    await remove_row(services, "manual")


async def state_of(services: Services) -> DocumentState:
    state = await services.documents.get("manual")
    assert state is not None
    return state


async def changed(services: Services, **update: Any) -> None:
    state = await state_of(services)
    await services.documents.replace(state.model_copy(update=update))


@pytest.mark.parametrize("change", [bump, close, remove])
async def test_a_changed_document_closes_the_answer_at_the_next_request(
    change: Change, services: Services, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    run = await answered(services)
    share = await shared(anna, run)
    ben = as_user(app, "ben", groups=["engineering"])
    assert (await ben.get(f"/shares/{share}")).json()["answer"] is not None
    await change(services, run, share)
    assert (await ben.get(f"/shares/{share}")).json()["answer"] is None
    assert (await anna.get(f"/shares/{share}")).json()["answer"] is None
    listed = (await anna.get(f"/runs/{run.run_id}/shares")).json()
    assert listed["obstacles"] == ["changed"]
    refused = await anna.post(f"/runs/{run.run_id}/shares", json={"audience": ["*"]})
    assert problem_of(refused) == (409, "ConflictError")


async def test_a_group_that_a_reader_left_counts_no_more(
    services: Services, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    share = await shared(anna, await answered(services), "pumps")
    member = as_user(app, "ben", groups=["engineering", "pumps"])
    assert (await member.get(f"/shares/{share}")).json()["answer"] is not None
    left = as_user(app, "ben", groups=["engineering"])
    assert (await left.get(f"/shares/{share}")).status_code == 404


async def test_a_guest_does_not_belong_to_the_organisation_of_a_share(
    services: Services, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    share = await shared(anna, await answered(services), f"org:{TENANT}")
    member = as_user(app, "ben", groups=["engineering"], org_id=TENANT)
    assert (await member.get(f"/shares/{share}")).json()["answer"] is not None
    guest = as_user(app, "gita", groups=["engineering"])  # `admitted` removes the organisation of a guest
    assert (await guest.get(f"/shares/{share}")).status_code == 404


async def expire(services: Services, run: RunRequest, share: str) -> None:
    path = f"{run.run_id}/shares/{share}.json"
    stored = await read_model(services.blobs, RUN_LOG, path, StoredShare)
    over = datetime.now(UTC) - timedelta(seconds=1)
    await write_model(services.blobs, RUN_LOG, path, stored.model_copy(update={"expires_at": over}))


async def clear(services: Services, run: RunRequest, share: str) -> None:
    await clear_thread(run.thread_id, ANNA, services)


async def delete(services: Services, run: RunRequest, share: str) -> None:
    await delete_thread(run.thread_id, ANNA, services)


async def delete_and_erase(services: Services, run: RunRequest, share: str) -> None:
    await delete(services, run, share)
    await erase_queued(services)


async def erase_owner(services: Services, run: RunRequest, share: str) -> None:
    await ask_for_erasure(ANNA.user_id, "keep", services)
    orchestrations = Orchestrations()
    assert isinstance(services.queues, InMemoryTaskQueues)
    for message in services.queues.take(ERASURES_QUEUE):
        task = EraseUserTask.model_validate_json(message)
        await advance(task.erasure_id, services, orchestrations.deps())


async def turn_off(services: Services, run: RunRequest, share: str) -> None:
    services.settings = OFF


ENDS: list[Change] = [expire, clear, delete, delete_and_erase, erase_owner, turn_off]


@pytest.mark.parametrize("end", ENDS)
async def test_an_ended_share_looks_like_one_that_never_was(
    end: Change, services: Services, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    run = await answered(services)
    share = await shared(anna, run)
    unknown = await anna.get(f"/shares/{'x' * 32}")
    assert problem_of(unknown) == (404, "NotFoundError")
    for user in (anna, as_user(app, "ben", groups=["engineering"])):
        assert (await user.get(f"/shares/{share}")).status_code == 200
    await end(services, run, share)
    for user in (anna, as_user(app, "ben", groups=["engineering"])):
        refused = await user.get(f"/shares/{share}")
        assert (refused.status_code, without_id(refused)) == (404, without_id(unknown))
        assert set(refused.headers) == set(unknown.headers)


async def test_refusals_of_every_kind_are_the_same_byte_for_byte(
    services: Services, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    run = await answered(services)
    foreign = await shared(anna, run, "clara")
    revoked = await shared(anna, run)
    assert (await anna.delete(f"/runs/{run.run_id}/shares/{revoked}")).status_code == 204
    ben = as_user(app, "ben", groups=["engineering"])
    names = (foreign, revoked, "x" * 32, "short", "x" * 200)
    bodies = {without_id(await ben.get(f"/shares/{name}")) for name in names}
    assert len(bodies) == 1


@pytest.mark.parametrize(
    ("times", "clock"),
    [
        (50, thread_time),  # doesn't count the time in which other processes run
        pytest.param(1000, perf_counter, marks=[pytest.mark.e2e, pytest.mark.nightly]),
    ],
)
async def test_refusals_take_about_the_same_time(
    times: int, clock: Callable[[], float], services: Services, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    """Compare the median durations of the kinds of refusals. They alternate, so that a busy moment affects
    all of them.
    """
    run = await answered(services)
    foreign, expired = await shared(anna, run, "clara"), await shared(anna, run)
    revoked, readable = await shared(anna, run), await shared(anna, run)
    await expire(services, run, expired)
    assert (await anna.delete(f"/runs/{run.run_id}/shares/{revoked}")).status_code == 204
    ben, sharing_on = as_user(app, "ben", groups=["engineering"]), services.settings
    seconds: dict[str, list[float]] = {}
    for _ in range(times):
        for kind, name in {
            "foreign": foreign,
            "expired": expired,
            "revoked": revoked,
            "unknown": "x" * 32,
            "off": readable,
        }.items():
            services.settings = OFF if kind == "off" else sharing_on
            began = clock()
            refused = await ben.get(f"/shares/{name}")
            seconds.setdefault(kind, []).append(clock() - began)
            assert refused.status_code == 404
    medians = [median(durations) for durations in seconds.values()]
    assert max(medians) - min(medians) < 0.002


async def test_turning_sharing_on_again_opens_the_share_again(
    services: Services, anna: httpx.AsyncClient
) -> None:
    run = await answered(services)
    share = await shared(anna, run)
    await turn_off(services, run, share)
    assert (await anna.get(f"/runs/{run.run_id}/shares")).status_code == 404
    assert (await anna.post(f"/runs/{run.run_id}/shares", json={"audience": ["*"]})).status_code == 404
    services.settings = settings(subagents_enabled=False, sharing=True)
    assert (await anna.get(f"/shares/{share}")).status_code == 200


async def test_sharing_is_off_by_default() -> None:
    assert settings().conversations.sharing is False


async def test_a_share_requires_an_identity(
    services: Services, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    share = await shared(anna, await answered(services))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app/api") as nobody:
        assert (await nobody.get(f"/shares/{share}")).status_code == 401


async def test_only_the_owner_shares_lists_and_revokes(
    services: Services, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    run = await answered(services)
    share = await shared(anna, run)
    ben = as_user(app, "ben", groups=["engineering"])
    shares = f"/runs/{run.run_id}/shares"
    assert (await ben.post(shares, json={"audience": ["ben"]})).status_code == 404
    assert (await ben.get(shares)).status_code == 404
    assert (await ben.delete(f"{shares}/{share}")).status_code == 404
    assert (await anna.get(f"/shares/{share}")).status_code == 200


async def test_the_owner_sees_active_shares_and_what_readers_need(
    services: Services, anna: httpx.AsyncClient
) -> None:
    run = await answered(services)
    first, second = await shared(anna, run, "ben"), await shared(anna, run, "clara", days=90)
    await expire(services, run, first)
    listed = (await anna.get(f"/runs/{run.run_id}/shares")).json()
    assert [(one["share_id"], one["audience"]) for one in listed["shares"]] == [(second, ["clara"])]
    assert listed["documents"] == [{"doc_id": "manual", "filename": "manual.pdf"}]
    assert listed["obstacles"] == []
    (one,) = listed["shares"]
    lasts = datetime.fromisoformat(one["expires_at"]) - datetime.fromisoformat(one["created_at"])
    assert lasts == timedelta(days=90)


@pytest.mark.parametrize(
    "body",
    [{"audience": []}, {"audience": ["ben"], "days": 91}, {"audience": ["ben"], "days": 0}, {}],
)
async def test_an_order_out_of_bounds_is_refused(
    body: dict[str, Any], services: Services, anna: httpx.AsyncClient
) -> None:
    run = await answered(services)
    assert (await anna.post(f"/runs/{run.run_id}/shares", json=body)).status_code == 400


@pytest.mark.parametrize("audience", ["*", "org:contoso"])
async def test_wide_shares_need_the_role(
    audience: str, services: Services, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    services.settings = settings(subagents_enabled=False, sharing=True, publish_role="publisher")
    run = await answered(services)
    order = {"audience": [audience]}
    assert (await anna.post(f"/runs/{run.run_id}/shares", json=order)).status_code == 403
    publisher = as_user(app, "anna", groups=["engineering"], roles=["publisher"])
    assert (await publisher.post(f"/runs/{run.run_id}/shares", json=order)).status_code == 201


@pytest.mark.parametrize("obstacle", ["counts", "database", "workspace", "tool", "unknown"])
async def test_an_answer_with_an_obstacle_is_not_shared(
    obstacle: Obstacle, services: Services, anna: httpx.AsyncClient
) -> None:
    run = await answered(services)
    stored = await stored_provenance(run.run_id, services.blobs)
    await keep_provenance(run.run_id, stored.model_copy(update={"obstacles": (obstacle,)}), services.blobs)
    refused = await anna.post(f"/runs/{run.run_id}/shares", json={"audience": ["ben"]})
    assert problem_of(refused) == (409, "ConflictError")
    assert (await anna.get(f"/runs/{run.run_id}/shares")).json()["obstacles"] == [obstacle]


async def test_documents_behind_earlier_turns_are_needed(
    services: Services, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    first = await answered(services)
    later = await answered(services, thread_id=first.thread_id)
    before = await stored_provenance(first.run_id, services.blobs)
    secret = UsedDocument(doc_id="report", version=0)
    world = World()
    world.services = services
    await world.add("report", readers=("engineering",))
    more = before.model_copy(update={"documents": (*before.documents, secret)})
    await keep_provenance(first.run_id, more, services.blobs)
    share = await shared(anna, later)
    needed = (await anna.get(f"/runs/{later.run_id}/shares")).json()["documents"]
    assert [one["doc_id"] for one in needed] == ["manual", "report"]
    ben = as_user(app, "ben", groups=["engineering"])
    assert (await ben.get(f"/shares/{share}")).json()["answer"] is not None
    await remove_row(services, "report")
    assert (await ben.get(f"/shares/{share}")).json()["answer"] is None


async def test_an_earlier_turn_without_a_record_is_an_obstacle(
    services: Services, anna: httpx.AsyncClient
) -> None:
    first = await answered(services)
    later = await answered(services, thread_id=first.thread_id)
    await services.blobs.delete(RUN_LOG, f"{first.run_id}/provenance.json")
    assert (await anna.get(f"/runs/{later.run_id}/shares")).json()["obstacles"] == ["unknown"]


async def test_a_remembered_answer_that_is_gone_is_an_obstacle(
    services: Services, anna: httpx.AsyncClient
) -> None:
    run = await answered(services)
    stored = await stored_provenance(run.run_id, services.blobs)
    remembered = stored.model_copy(update={"run_ids": ("gone",)})
    await keep_provenance(run.run_id, remembered, services.blobs)
    assert (await anna.get(f"/runs/{run.run_id}/shares")).json()["obstacles"] == ["unknown"]


async def test_revoking_an_unknown_share_is_refused_and_keeps_the_others(
    services: Services, anna: httpx.AsyncClient
) -> None:
    run, other_run = await answered(services), await answered(services, "Who supplies the pump?")
    share, revoked = await shared(anna, run), await shared(anna, run)
    shares = f"/runs/{run.run_id}/shares"
    assert (await anna.delete(f"{shares}/{revoked}")).status_code == 204
    for unknown in ("bogus", "x" * 32, revoked, await shared(anna, other_run)):
        refused = await anna.delete(f"{shares}/{unknown}")
        assert problem_of(refused) == (404, "NotFoundError")
        assert refused.json()["detail"] == "This share doesn't exist or was revoked."
    assert [one["share_id"] for one in (await anna.get(shares)).json()["shares"]] == [share]


async def test_acts_are_on_record_also_when_refused(
    services: Services, app: ASGIApp, anna: httpx.AsyncClient
) -> None:
    run = await answered(services)
    share = await shared(anna, run)
    await as_user(app, "ben", groups=["engineering"]).get(f"/shares/{share}")
    await as_user(app, "clara").get(f"/shares/{share}")
    await as_user(app, "clara").get(f"/shares/{'x' * 32}")
    await anna.delete(f"/runs/{run.run_id}/shares/{share}")
    day = timedelta(days=1)
    now = datetime.now(UTC)
    entries = (await services.audit.page(AuditFilter(now - day, now + day), 20)).entries
    acts = [
        (one.user_id, one.action, one.subject, one.doc_ids)
        for one in reversed(entries)
        if one.action in ("share", "open_share", "revoke_share")
    ]
    assert acts == [
        ("anna", "share", "", ()),
        ("ben", "open_share", "answer", ("manual",)),
        ("clara", "open_share", "question", ()),
        ("clara", "open_share", "refused", ()),
        ("anna", "revoke_share", "", ()),
    ]


async def test_erasing_a_run_leaves_nothing_of_its_shares(
    services: Services, anna: httpx.AsyncClient
) -> None:
    run = await answered(services)
    share = await shared(anna, run)
    await delete_and_erase(services, run, share)
    assert [one.name async for one in services.blobs.list_blobs(WORK, POINTERS)] == []
    assert [one.name async for one in services.blobs.list_blobs(RUN_LOG, run.run_id)] == []


async def test_shares_are_purged_after_the_longest_time(services: Services, anna: httpx.AsyncClient) -> None:
    run = await answered(services)
    share = await shared(anna, run)
    now = datetime.now(UTC)
    assert await purge_shares(now + timedelta(days=89), services.blobs) == 0
    assert await purge_shares(now + timedelta(days=91), services.blobs) == 1
    assert (await anna.get(f"/shares/{share}")).status_code == 404
    assert [one async for one in services.blobs.list_blobs(RUN_LOG, f"{run.run_id}/shares/")] == []


async def test_a_pointer_alone_opens_nothing(services: Services, anna: httpx.AsyncClient) -> None:
    run = await answered(services)
    name = "p" * 32
    await write_model(services.blobs, WORK, f"{POINTERS}{name}.json", SharePointer(run_id=run.run_id))
    assert (await anna.get(f"/shares/{name}")).status_code == 404
