"""What must fail, clearly; and what an orchestrator may rely on at every replay."""

import math

import pytest

from tests.contract.durable.server import DurableServer
from tests.contract.durable.stage import stage

pytestmark = pytest.mark.contract


@pytest.mark.filterwarnings("ignore:Potential duplicate Task completion")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "other kind",
            "an activity named 'hold' with sequence ID 0, but the current replay produced a timer there",
        ),
        ("other name", "but the current replay produced an activity named 'echo' there"),
        ("nothing", "has not (yet?) scheduled this task"),
    ],
)
async def test_a_changed_orchestrator_is_found_out(server: DurableServer, change: str, message: str) -> None:
    instance_id = await server.start("changes_its_mind", change)
    await server.until(instance_id, "Running")
    stage.changed = True
    stage.gate("work").set()

    status = await server.until(instance_id, "Failed")

    assert status.output.startswith("Non-Deterministic workflow detected")
    assert message in status.output


@pytest.mark.parametrize(("name", "what"), [("calls_http", "CALL_HTTP"), ("calls_entity", "CALL_ENTITY")])
async def test_what_is_not_supported_says_so(server: DurableServer, name: str, what: str) -> None:
    status = await server.run(name)

    assert (status.runtime_status.value, status.output) == (
        "Failed",
        f"{what} is not supported by the local durable executor.",
    )


async def test_function_names_are_matched_exactly(server: DurableServer) -> None:
    status = await server.run("calls_unknown_activity")

    assert status.runtime_status.value == "Failed"
    assert "The function 'Echo' doesn't exist" in status.output
    assert "'echo'" in status.output


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("returns_an_object", "failed: Object of type object is not JSON serializable"),
        ("fails_outside_the_generator", "failed: not even a generator"),
    ],
)
async def test_an_orchestrator_that_cannot_go_on_fails(
    server: DurableServer, name: str, message: str
) -> None:
    status = await server.run(name)

    assert status.runtime_status.value == "Failed"
    assert message in status.output


async def test_ids_and_times_are_the_same_at_every_replay(server: DurableServer) -> None:
    output = (await server.run("looks_around")).output

    seen_at = {
        number: {(guid, time) for n, guid, time, _ in stage.seen if n == number} for number in range(3)
    }
    assert all(len(values) == 1 for values in seen_at.values())
    assert len(set(output["ids"])) == 4
    assert output["times"] == sorted(output["times"])


async def test_is_replaying_is_false_once_for_each_step(server: DurableServer) -> None:
    await server.run("looks_around")

    for number in range(3):
        flags = [replaying for n, _, _, replaying in stage.seen if n == number]
        assert flags == [False] + [True] * (2 - number)


async def test_the_version_given_at_the_start_reaches_the_orchestrator(server: DurableServer) -> None:
    instance_id = await server.client.start_new("looks_around", version="2.1")

    assert (await server.until(instance_id, "Completed")).output["version"] == "2.1"


async def test_trap_a_retry_raced_against_a_timer_that_is_cancelled(server: DurableServer) -> None:
    """On the host the cancelled timer ends the race before the retry counts its own timer: numbers shift."""
    status = await server.run("retry_against_timer")

    assert status.runtime_status.value == "Failed"
    assert status.output.startswith("Non-Deterministic workflow detected")


async def test_an_output_that_is_not_a_number_can_be_read(server: DurableServer) -> None:
    status = await server.run("returns_nan")

    assert status.runtime_status.value == "Completed"
    assert math.isnan(status.output)
