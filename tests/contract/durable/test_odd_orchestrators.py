"""Orchestrators that must fail with a clear message, and guarantees that hold at every replay."""

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


async def test_trap_a_retry_raced_against_a_timer_that_is_cancelled(server: DurableServer) -> None:
    """Show the trap: on the host, the cancelled timer ends the race before the retry gets a number for its
    own timer, so all later numbers are shifted.
    """
    status = await server.run("retry_against_timer")

    assert status.runtime_status.value == "Failed"
    assert status.output.startswith("Non-Deterministic workflow detected")


@pytest.mark.filterwarnings("ignore:Potential duplicate Task completion")
async def test_trap_going_on_beside_a_retry_gives_wrong_results_and_a_warning(
    server: DurableServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Show the trap: the SDK numbers the next activity before the retry's timer, and the host numbers it
    afterwards.
    """
    instance_id = await server.start("goes_on_beside_a_retry")
    await server.until_custom_status(instance_id, "caught")
    stage.gate("retried").set()
    status = await server.until(instance_id, "Completed")

    assert status.output is None, "9 is what the code says"
    assert "durable.generator_ahead orchestrator=goes_on_beside_a_retry" in caplog.text


async def test_a_falsy_custom_status_clears_the_former_one(server: DurableServer) -> None:
    instance_id = await server.start("sets_custom_status", [{"step": 1}, ""])
    await server.until_custom_status(instance_id, {"step": 1})
    await server.client.raise_event(instance_id, "after 11")

    await server.until_custom_status(instance_id, None)


@pytest.mark.parametrize(("characters", "outcome"), [(8_000, "Completed"), (9_000, "Failed")])
async def test_a_custom_status_has_at_most_16_kb_of_utf16(
    server: DurableServer, characters: int, outcome: str
) -> None:
    status = await server.run("sets_status_of_size", characters)

    assert status.runtime_status.value == outcome
    assert ("must not exceed 16 KB" in str(status.output)) is (outcome == "Failed")
