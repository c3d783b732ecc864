"""Activities, retries and children: generator and executor count alike, and results are correct."""

import asyncio
from pathlib import Path

import pytest

from tests.contract.durable.sdk_functions import SdkFunctions
from tests.contract.durable.server import DurableServer
from tests.contract.durable.stage import stage

pytestmark = pytest.mark.contract


async def test_activities_run_one_after_the_other(server: DurableServer) -> None:
    status = await server.run("sequence", [1, 2, 3])

    assert (status.runtime_status.value, status.output) == ("Completed", 14)
    assert status.output == 14


@pytest.mark.parametrize(
    "value", [None, 0, "", "text", 'quote " and ü', [1, None], {"a": {"b": []}}, 1.5, True]
)
async def test_values_come_through_unchanged(server: DurableServer, value: object) -> None:
    status = await server.run("echo_input", value)

    assert status.output == value
    assert type(status.output) is type(value)


async def test_tasks_yielded_together_run_in_parallel_up_to_the_limit(
    functions: SdkFunctions, tmp_path: Path
) -> None:
    stage.reset()
    async with DurableServer(functions, tmp_path / "s.sqlite", max_parallel_activities=3) as server:
        status = await server.run("fan_out", 12)

    assert status.output == list(range(12))
    assert stage.most_running == 3


async def test_nested_task_all_and_task_any(server: DurableServer) -> None:
    instance_id = await server.start("nested")
    # The inner task_any has a winner, but its other task is still open, so the orchestration must not end.
    await server.until_custom_status(instance_id, "decided")
    assert (await server.status(instance_id)).runtime_status.value == "Running"

    stage.gate("slow").set()
    status = await server.until(instance_id, "Completed")

    assert status.output == ["quick", [4, 9], "plain"]


async def test_task_any_in_a_loop_schedules_each_task_once(server: DurableServer) -> None:
    assert (await server.run("yields_the_same_tasks_again")).output == [1, 4, 9, 16]


async def test_a_task_that_is_never_yielded_never_runs(server: DurableServer) -> None:
    assert (await server.run("never_yielded")).output == 25
    assert stage.runs["echo"] == 0


async def test_a_failed_activity_raises_in_the_orchestrator(server: DurableServer) -> None:
    output = (await server.run("catches")).output

    assert output.startswith("Activity function 'fail_first' failed: attempt 1 of fail_first \n Traceback")


async def test_task_all_raises_at_once_but_the_instance_waits_for_the_other_task(
    server: DurableServer,
) -> None:
    instance_id = await server.start("all_with_failure")
    await server.until_custom_status(instance_id, "caught")
    assert (await server.status(instance_id)).runtime_status.value == "Running"

    stage.gate("other").set()

    assert (await server.until(instance_id, "Completed")).output == "done"


async def test_a_retry_that_succeeds(server: DurableServer) -> None:
    status = await server.run("retries", 2)

    assert status.output == ["succeeded at attempt 3", 36]


async def test_a_retry_that_gives_up_takes_one_more_timer(server: DurableServer) -> None:
    instance_id = await server.start("retries", 99)
    status = await server.until(instance_id, "Completed")

    assert status.output[0].startswith("gave up: Activity function 'fail_first' failed: attempt 3")
    assert status.output[1] == 36
    assert stage.runs["fail_first"] == 3
    kinds = [event["EventType"] for event in await server.history(instance_id)]
    assert kinds.count("TaskFailed") == 3
    assert kinds.count("TimerFired") == 3


async def test_children_with_generated_and_fixed_ids(server: DurableServer) -> None:
    generated, fixed = (await server.run("parent", instance_id="family")).output

    assert fixed == {"squared": 16, "id": "family:c0", "parent": "family"}
    assert generated["squared"] == 9
    assert generated["parent"] == "family"
    execution_id, _, task_id = generated["id"].partition(":")
    assert (len(execution_id), task_id) == (32, "0")
    assert (await server.status("family:c0")).runtime_status.value == "Completed"


async def test_a_child_may_not_have_the_id_of_its_parent(server: DurableServer) -> None:
    status = await server.run("calls_child_named", "me", instance_id="me")

    assert status.runtime_status.value == "Failed"
    assert "must be different than the instance ID of a parent" in status.output


async def test_a_child_id_that_is_taken_fails_the_task(server: DurableServer) -> None:
    await server.start("holds", "taken", instance_id="taken")
    await server.until("taken", "Running")

    output = (await server.run("calls_child_named", "taken")).output

    assert output.startswith("An Orchestration instance with the status Running already exists.")
    stage.gate("taken").set()


async def test_different_instances_run_side_by_side(server: DurableServer) -> None:
    ids = [await server.start("holds", f"gate {number}") for number in range(8)]
    await asyncio.gather(*(server.until(instance_id, "Running") for instance_id in ids))

    # The gates are opened in reverse order, to prove that no instance waits for another.
    for number in reversed(range(8)):
        stage.gate(f"gate {number}").set()
        assert (await server.until(ids[number], "Completed")).output == f"gate {number}"
