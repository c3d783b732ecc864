"""The client API as seen by the real client, and by a plain HTTP caller."""

import asyncio
from datetime import UTC, datetime, timedelta

import azure.durable_functions as df
import httpx
import pytest

from functions.background import _purge_histories
from tests.contract.durable.server import DurableServer
from tests.contract.durable.stage import stage

pytestmark = pytest.mark.contract

Status = df.OrchestrationRuntimeStatus


def _http(server: DurableServer) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"{server.base_url}/runtime/webhooks/durabletask", timeout=60)


async def test_an_unknown_orchestrator_is_a_clear_error(server: DurableServer) -> None:
    with pytest.raises(Exception, match=r"The function 'Sequence' doesn't exist.*'sequence'"):
        await server.start("Sequence", [])


@pytest.mark.parametrize(
    ("instance_id", "message"),
    [
        ("@counter", "must not start with @"),
        ("x" * 101, "must not exceed 100"),
        ("a%5Cb", "must not contain /"),
    ],
)
async def test_an_unusable_instance_id_is_refused(
    server: DurableServer, instance_id: str, message: str
) -> None:
    with pytest.raises(Exception, match=message):
        await server.start("sequence", [1], instance_id)


async def test_the_id_of_a_running_instance_cannot_be_started_again(server: DurableServer) -> None:
    await server.start("holds", "work", instance_id="one")

    async with _http(server) as http:
        answer = await http.post("/orchestrators/sequence/one", json="[1]")
    assert answer.status_code == 409
    with pytest.raises(Exception, match="already exists"):
        await server.start("sequence", [1], "one")
    assert (await server.status("one")).name == "holds"


async def test_the_id_of_an_ended_instance_is_taken_over(server: DurableServer) -> None:
    await server.run("sequence", [1, 2], instance_id="one")
    status = await server.run("echo_input", "new", instance_id="one")

    assert (status.name, status.output) == ("echo_input", "new")
    kinds = [event["EventType"] for event in await server.history("one")]
    assert kinds.count("TaskCompleted") == 1


async def test_of_several_starts_with_one_id_one_wins(server: DurableServer) -> None:
    await server.status("nobody")  # the client opens its session with this call
    starts = [server.start("holds", "work", instance_id="one") for _ in range(5)]
    results = await asyncio.gather(*starts, return_exceptions=True)

    assert sum(result == "one" for result in results) == 1


async def test_a_status_tells_everything_about_an_instance(server: DurableServer) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    await server.run("retries", 1, instance_id="one")
    status = await server.status("one", show_input=True)

    assert (status.name, status.instance_id, status.input_) == ("retries", "one", "1")
    assert before <= status.created_time <= status.last_updated_time <= datetime.now(UTC)
    assert status.historyEvents is None


async def test_history_shows_inputs_and_results_only_when_asked(server: DurableServer) -> None:
    await server.run("sequence", [3], instance_id="one")

    events = (await server.status("one", show_history=True, show_history_output=True)).historyEvents
    assert [event["EventType"] for event in events] == [
        "ExecutionStarted",
        "TaskCompleted",
        "ExecutionCompleted",
    ]
    assert (events[1]["FunctionName"], events[1]["Input"], events[1]["Result"]) == ("square", "3", 9)
    assert (events[2]["OrchestrationStatus"], events[2]["Result"]) == ("Completed", 9)

    async with _http(server) as http:
        answer = await http.get("/instances/one", params={"showHistory": "true", "showInput": "false"})
    plain = answer.json()
    assert plain["input"] is None
    assert not any("Input" in event or "Result" in event for event in plain["historyEvents"])


async def test_a_running_instance_is_202_with_an_address_and_an_ended_one_200(server: DurableServer) -> None:
    await server.start("holds", "work", instance_id="one")
    async with _http(server) as http:
        running = await http.get("/instances/one")
        stage.gate("work").set()
        await server.until("one", "Completed")
        ended = await http.get("/instances/one")

    assert (running.status_code, ended.status_code) == (202, 200)
    assert running.headers["location"].endswith("/instances/one")


async def test_instances_are_listed_by_status_prefix_and_time(server: DurableServer) -> None:
    for number in range(3):
        await server.run("sequence", [number], instance_id=f"done-{number}")
    await server.start("holds", "work", instance_id="open-1")
    await server.until("open-1", "Running")
    now = datetime.now(UTC)

    async def ids(**filters: object) -> list[str]:
        return [status.instance_id for status in await server.client.get_status_by(**filters)]

    assert len(await server.client.get_status_all()) == 4
    assert await ids(runtime_status=[Status.Running, Status.Pending]) == ["open-1"]
    assert await ids(runtime_status=[Status.Completed]) == ["done-0", "done-1", "done-2"]
    assert await ids(instance_id_prefix="open") == ["open-1"]
    assert await ids(created_time_from=now + timedelta(hours=1)) == []
    assert await ids(created_time_to=now - timedelta(hours=1)) == []
    assert len(await ids(created_time_from=now - timedelta(hours=1), created_time_to=now)) == 4


async def test_a_list_comes_in_pages(server: DurableServer) -> None:
    for number in range(5):
        await server.run("sequence", [], instance_id=f"one-{number}")

    pages, token = [], ""
    async with _http(server) as http:
        while True:
            answer = await http.get(
                "/instances", params={"top": 2}, headers={"x-ms-continuation-token": token}
            )
            pages.append([item["instanceId"] for item in answer.json()])
            token = answer.headers["x-ms-continuation-token"]
            if not token:
                break
    assert pages == [["one-0", "one-1"], ["one-2", "one-3"], ["one-4"]]


async def test_bad_requests_are_told_what_is_wrong(server: DurableServer) -> None:
    await server.start("holds", "work", instance_id="one")
    json_type = {"content-type": "application/json"}
    async with _http(server) as http:
        answers = [
            await http.post("/orchestrators/sequence", content="{", headers=json_type),
            await http.post("/instances/one/raiseEvent/go", content="{", headers=json_type),
            await http.post(
                "/instances/one/raiseEvent/go", content="1", headers={"content-type": "text/plain"}
            ),
            await http.get("/instances", params={"createdTimeFrom": "yesterday"}),
            await http.get("/instances", headers={"x-ms-continuation-token": "%%"}),
            await http.delete("/instances"),
        ]
    assert [answer.status_code for answer in answers] == [400] * 6
    assert all(answer.json()["ExceptionMessage"] for answer in answers)


async def test_what_ended_is_gone_and_what_never_was_is_not_found(server: DurableServer) -> None:
    await server.run("sequence", [], instance_id="ended")

    with pytest.raises(Exception, match="is gone"):
        await server.client.raise_event("ended", "go")
    with pytest.raises(Exception, match="No instance"):
        await server.client.raise_event("nobody", "go")
    await server.client.terminate("ended", "late")  # the client treats status 410 as success
    with pytest.raises(Exception, match="No instance"):
        await server.client.terminate("nobody", "reason")
    assert (await server.status("ended")).runtime_status is Status.Completed


async def test_purging_a_running_instance_forgets_its_work(server: DurableServer) -> None:
    await server.start("holds", "work", instance_id="one")
    await server.until("one", "Running")
    await server.client.purge_instance_history("one")
    stage.gate("work").set()
    await server.run("sequence", [1])

    assert not await server.status("one")


async def test_purging_by_filter_spares_what_runs(server: DurableServer) -> None:
    await server.run("sequence", [1], instance_id="done")
    await server.run("does_not_catch", instance_id="failed")
    await server.start("holds", "work", instance_id="open")
    since = datetime.now(UTC) - timedelta(hours=1)

    failed_only = await server.client.purge_instance_history_by(since, runtime_status=[Status.Failed])
    rest = await server.client.purge_instance_history_by(since)

    assert (failed_only.instances_deleted, rest.instances_deleted) == (1, 1)
    assert await server.status("open")
    assert (await server.client.purge_instance_history_by(since)).instances_deleted == 0


async def test_what_ended_before_a_moment_is_forgotten_whatever_it_was(server: DurableServer) -> None:
    await server.run("sequence", [1], instance_id="done")
    await server.run("does_not_catch", instance_id="failed")
    await server.start("holds", "work", instance_id="open")
    now = datetime.now(UTC)
    assert await _purge_histories(server.client, now - timedelta(hours=1)) == 0
    assert await _purge_histories(server.client, now + timedelta(seconds=1)) == 2
    assert await server.status("open")


async def test_an_instance_is_restarted_with_its_input(server: DurableServer) -> None:
    await server.run("sequence", [3], instance_id="one")

    again = await server.client.restart("one")
    assert again["id"] != "one"
    assert (await server.until(again["id"], "Completed")).output == 9
    same = await server.client.restart("one", restart_with_new_instance_id=False)
    assert same["id"] == "one"
    assert (await server.until("one", "Completed")).output == 9
    with pytest.raises(Exception, match="No instance"):
        await server.client.restart("nobody")


async def test_the_addresses_of_the_management_payload_work(server: DurableServer) -> None:
    instance_id = await server.start("waits_for_event", "go")
    urls = server.client.create_http_management_payload(instance_id)

    async with httpx.AsyncClient(timeout=60) as http:
        assert (await http.get(urls["statusQueryGetUri"])).status_code == 202
        raised = await http.post(urls["sendEventPostUri"].replace("{eventName}", "go"), json={"n": 1})
        assert raised.status_code == 202
        status = await server.until(instance_id, "Completed")
        assert (await http.delete(urls["purgeHistoryDeleteUri"])).json() == {"instancesDeleted": 1}

    # Plain HTTP encodes the object only once, so the orchestrator receives the object itself.
    assert status.output == {"n": 1}


async def test_a_plain_http_caller_may_post_an_object_or_nothing(server: DurableServer) -> None:
    async with _http(server) as http:
        posted = await http.post("/orchestrators/echo_input/one", json={"a": 1})
        nothing = await http.post("/orchestrators/echo_input/two")
    assert (posted.status_code, nothing.status_code) == (202, 202)
    assert posted.json()["id"] == "one"
    assert posted.headers["location"] == posted.json()["statusQueryGetUri"]

    assert (await server.until("one", "Completed")).output == {"a": 1}
    assert (await server.until("two", "Completed")).output is None
