"""`orchestrations.fan_out.race` on the executor: late children are really ended, and the parent goes on."""

import time

from tests.contract.durable.server import DurableServer
from tests.contract.durable.stage import stage


async def test_children_in_time_leave_no_timer_behind(server: DurableServer) -> None:
    begun = time.monotonic()
    status = await server.run("races_children", {"gates": ["", "raises", ""], "at_once": 2, "seconds": 60})
    assert status.output == ["done", "failed", "done", 49]
    assert time.monotonic() - begun < 30  # an open timer would have held the parent for its minute


async def test_late_children_are_terminated_and_the_parent_ends(server: DurableServer) -> None:
    given = {"gates": ["", "slow child", "slower child"], "at_once": 3, "seconds": 2.0}
    status = await server.run("races_children", given, instance_id="parent")
    assert status.output == ["done", "late", "late", 49]
    for child in ("parent:c1", "parent:c2"):
        assert (await server.status(child)).runtime_status.value == "Terminated"
    stage.gate("slow child").set()
    stage.gate("slower child").set()


async def test_the_deadline_holds_in_a_later_wave_too(server: DurableServer) -> None:
    given = {"gates": ["", "", "slow child", ""], "at_once": 2, "seconds": 2.5}
    status = await server.run("races_children", given, instance_id="waves")
    assert status.output == ["done", "done", "late", "done", 49]
    stage.gate("slow child").set()
