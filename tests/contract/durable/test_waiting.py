"""Timers, events, the open-task rule, continue-as-new, terminate, and children that race a deadline."""

import asyncio
from pathlib import Path

import pytest

from local.durable.protocol import TimerLimits
from orchestrations.fan_out import MAX_RESTARTS, RESTART_PAUSE
from tests.contract.durable.sdk_functions import SdkFunctions
from tests.contract.durable.server import DurableServer
from tests.contract.durable.stage import stage

pytestmark = pytest.mark.contract

HOUR_S = 3600  # No test waits for a timer of this length. Tests advance the clock instead.

# The SDK warns if an event arrives before it is awaited, and warnings are errors in tests.
early_event = pytest.mark.filterwarnings("ignore:Potential duplicate Task completion")


async def test_a_timer_fires_not_before_its_time(server: DurableServer) -> None:
    instance_id = await server.start("sleeps", HOUR_S)
    await server.until_recorded(instance_id, "TimerCreated")
    server.clock.advance(HOUR_S - 60)
    await server.run("echo_input", "something else meanwhile")
    assert (await server.status(instance_id)).runtime_status.value == "Running"

    server.clock.advance(60)

    assert (await server.until(instance_id, "Completed")).output is True


async def test_a_timer_longer_than_the_limit_is_split(functions: SdkFunctions, tmp_path: Path) -> None:
    limits = TimerLimits(maximum_short_timer="00:00:00.1000000", long_timer_interval="00:00:00.0500000")
    async with DurableServer(functions, tmp_path / "s.sqlite", timer_limits=limits) as server:
        instance_id = await server.start("sleeps", 0.2)
        assert (await server.until(instance_id, "Completed")).output is True
        fired = [event for event in await server.history(instance_id) if event["EventType"] == "TimerFired"]

    assert len(fired) > 1


async def test_an_event_wins_over_a_timer_which_is_cancelled(server: DurableServer) -> None:
    instance_id = await server.start("event_or_timer", HOUR_S)
    await server.until(instance_id, "Running")

    await server.client.raise_event(instance_id, "go", {"approved": True})

    # The instance completes before the hour is over, because a cancelled timer is not an open task.
    assert (await server.until(instance_id, "Completed")).output == ["event", '{"approved": true}', 81]


async def test_a_timer_wins_over_an_event(server: DurableServer) -> None:
    instance_id = await server.start("event_or_timer", HOUR_S)
    await server.until_recorded(instance_id, "TimerCreated")
    server.clock.advance(HOUR_S)
    assert (await server.until(instance_id, "Completed")).output == ["timer", None, 81]


async def test_the_client_encodes_event_data_twice_so_an_orchestrator_gets_text(
    server: DurableServer,
) -> None:
    instance_id = await server.start("waits_for_event", "go")
    await server.client.raise_event(instance_id, "go", {"n": 1})

    assert (await server.until(instance_id, "Completed")).output == '{"n": 1}'


@early_event
async def test_event_names_are_case_sensitive(server: DurableServer) -> None:
    instance_id = await server.start("waits_for_event", "go")
    await server.until(instance_id, "Running")
    await server.client.raise_event(instance_id, "Go", "wrong")
    await server.client.raise_event(instance_id, "go", "right")

    assert (await server.until(instance_id, "Completed")).output == '"right"'


@early_event
async def test_events_that_come_early_wait_in_a_buffer(server: DurableServer) -> None:
    instance_id = await server.start("works_then_waits")
    await server.client.raise_event(instance_id, "second", 2)
    await server.client.raise_event(instance_id, "first", 1)
    stage.gate("work").set()

    assert (await server.until(instance_id, "Completed")).output == ["1", "2", 64]


async def test_two_awaits_of_one_name_take_two_events(server: DurableServer) -> None:
    instance_id = await server.start("waits_twice_for_one_name")
    stage.gate("work").set()
    for number in (1, 2):
        await server.until_recorded(instance_id, "TaskCompleted", *["EventRaised"] * (number - 1))
        await server.client.raise_event(instance_id, "more", number)

    assert (await server.until(instance_id, "Completed")).output == ["1", "2"]


@early_event
async def test_trap_two_early_events_of_one_name_lose_the_first_in_the_sdk(server: DurableServer) -> None:
    """Show the trap: SDK 1.7.0 keeps only one early event per name, and returns it for every later await of
    that name.
    """
    instance_id = await server.start("waits_twice_for_one_name")
    await server.client.raise_event(instance_id, "more", 1)
    await server.client.raise_event(instance_id, "more", 2)
    stage.gate("work").set()

    assert (await server.until(instance_id, "Completed")).output == ["2", "2"]


async def test_an_open_timer_holds_the_instance_open(server: DurableServer) -> None:
    instance_id = await server.start("leaves_timer_open")
    await server.until_custom_status(instance_id, "returned")
    assert (await server.status(instance_id)).runtime_status.value == "Running"

    server.clock.advance(HOUR_S)

    assert (await server.until(instance_id, "Completed")).output == "done"


async def test_an_abandoned_child_holds_its_parent_open(server: DurableServer) -> None:
    instance_id = await server.start("abandons_child", "abandon")
    await server.until_custom_status(instance_id, "late")
    assert (await server.status(instance_id)).runtime_status.value == "Running"

    stage.gate("slow child").set()

    assert (await server.until(instance_id, "Completed")).output == "went on"


async def test_a_parent_that_has_its_child_terminated_ends_at_once(server: DurableServer) -> None:
    status = await server.run("abandons_child", "terminate", instance_id="parent")

    assert status.output == "went on"
    child = await server.status("parent:c0")
    assert (child.runtime_status.value, child.output) == ("Terminated", "too late")
    stage.gate("slow child").set()


async def test_the_result_of_an_activity_of_a_terminated_instance_is_dropped(server: DurableServer) -> None:
    instance_id = await server.start("holds", "work")
    await server.until_begun("work")
    await server.client.terminate(instance_id, "enough, “really”?")
    before = await server.until(instance_id, "Terminated")

    stage.gate("work").set()
    await server.run("echo_input", "something else meanwhile")

    after = await server.status(instance_id)
    assert (after.runtime_status.value, after.output) == ("Terminated", "enough, “really”?")
    assert after.last_updated_time == before.last_updated_time


async def test_a_late_result_does_not_reach_the_next_instance_of_the_same_id(server: DurableServer) -> None:
    await server.start("holds", "old", instance_id="one")
    await server.until_begun("old")
    await server.client.terminate("one", "start over")
    await server.until("one", "Terminated")
    await server.start("holds", "new", instance_id="one")
    await server.until_begun("new")

    stage.gate("old").set()
    await server.run("sequence", [1, 2, 3])
    assert (await server.status("one")).runtime_status.value == "Running"

    stage.gate("new").set()
    assert (await server.until("one", "Completed")).output == "new"


async def test_terminating_a_parent_leaves_its_children_running(server: DurableServer) -> None:
    """Check that children continue, as with Azure Storage. The product must end its children itself."""
    await server.start("calls_child_holding", "work", instance_id="parent")
    await server.until_begun("work")
    await server.client.terminate("parent", "stop")
    await server.until("parent", "Terminated")

    assert (await server.status("parent:c0")).runtime_status.value == "Running"
    stage.gate("work").set()
    assert (await server.until("parent:c0", "Completed")).output == "work"
    assert (await server.status("parent")).runtime_status.value == "Terminated"


@early_event
async def test_continue_as_new_carries_the_events_that_come_meanwhile(server: DurableServer) -> None:
    instance_id = await server.start("counts_events", {"seen": [], "wanted": 20})
    await asyncio.gather(*(server.client.raise_event(instance_id, "item", n) for n in range(20)))

    status = await server.until(instance_id, "Completed")

    assert sorted(map(int, status.output)) == list(range(20))
    assert status.custom_status == 20
    kinds = [event["EventType"] for event in await server.history(instance_id)]
    assert kinds.count("EventRaised") == 1, "each execution begins with an empty history"


@early_event
async def test_trap_continue_as_new_drops_the_events_that_nobody_awaited(server: DurableServer) -> None:
    """Show the trap: the host keeps only events after continue_as_new, and the Python SDK can't request
    more.
    """
    instance_id = await server.start("continues_without_awaiting", "first")
    await server.until_begun("work")
    await server.client.raise_event(instance_id, "item", "lost")
    stage.gate("work").set()
    await server.until_custom_status(instance_id, "second execution")
    await server.client.raise_event(instance_id, "item", "kept")

    assert (await server.until(instance_id, "Completed")).output == '"kept"'


async def test_continue_as_new_waits_for_open_tasks(server: DurableServer) -> None:
    instance_id = await server.start("continues_with_open_timer", "first")
    await server.until_custom_status(instance_id, "asked to continue")
    assert (await server.status(instance_id)).input_ == '"first"'

    server.clock.advance(HOUR_S)
    status = await server.until(instance_id, "Completed")

    assert (status.output, status.input_) == ("second execution", '"second"')


async def test_children_in_time_leave_no_timer_behind(server: DurableServer) -> None:
    parameters = {"gates": ["", "raises", ""], "at_once": 2, "seconds": HOUR_S}
    instance_id = await server.start("races_children", parameters)
    for restart in range(1, MAX_RESTARTS + 1):  # a failed child is restarted after a pause
        # Each start has a timer for the deadline, and each pause has another timer.
        await server.until_recorded(instance_id, *["TimerCreated"] * 2 * restart)
        server.clock.advance(RESTART_PAUSE.total_seconds())
    # A timer that is still open would keep the parent running for an hour.
    assert (await server.until(instance_id, "Completed")).output == ["done", "failed", "done", 49]


async def test_late_children_are_terminated_and_the_parent_ends(server: DurableServer) -> None:
    parameters = {"gates": ["", "slow child", "slower child"], "at_once": 3, "seconds": HOUR_S}
    await server.start("races_children", parameters, instance_id="parent")
    await server.until_recorded("parent", "SubOrchestrationInstanceCompleted")
    server.clock.advance(HOUR_S)
    assert (await server.until("parent", "Completed")).output == ["done", "late", "late", 49]
    for child in ("parent:c1", "parent:c2"):
        assert (await server.status(child)).runtime_status.value == "Terminated"
    stage.gate("slow child").set()
    stage.gate("slower child").set()


async def test_the_deadline_holds_in_a_later_wave_too(server: DurableServer) -> None:
    parameters = {"gates": ["", "", "slow child", ""], "at_once": 2, "seconds": HOUR_S}
    await server.start("races_children", parameters, instance_id="waves")
    await server.until_recorded("waves", *["SubOrchestrationInstanceCompleted"] * 3)
    server.clock.advance(HOUR_S)
    assert (await server.until("waves", "Completed")).output == ["done", "done", "late", "done", 49]
    stage.gate("slow child").set()
