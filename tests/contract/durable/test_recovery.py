"""A new executor on the same store continues where the previous one stopped."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from local.durable.database import StoreInUse
from local.durable.executor import DurableExecutor
from tests.contract.durable.sdk_functions import SdkFunctions
from tests.contract.durable.server import DurableServer
from tests.contract.durable.stage import stage

pytestmark = pytest.mark.contract


async def test_an_activity_without_recorded_end_runs_again(server: DurableServer) -> None:
    instance_id = await server.start("holds", "work")
    await server.until_begun("work")

    await server.restart()
    await server.until_begun("work", 2)
    stage.gate("work").set()

    assert (await server.until(instance_id, "Completed")).output == "work"


@pytest.mark.filterwarnings("ignore:Potential duplicate Task completion")
async def test_an_activity_with_recorded_end_does_not_run_again(server: DurableServer) -> None:
    instance_id = await server.start("works_then_waits")
    stage.gate("work").set()
    await server.until_recorded(instance_id, "TaskCompleted")
    await server.client.raise_event(instance_id, "unrelated", 0)

    await server.restart()
    for name in ("first", "second"):
        await asyncio.sleep(0.02)
        await server.client.raise_event(instance_id, name, name)

    assert (await server.until(instance_id, "Completed")).output == ['"first"', '"second"', 64]
    assert stage.runs["work"] == 1


async def test_a_timer_that_fell_due_meanwhile_fires_at_once(server: DurableServer) -> None:
    instance_id = await server.start("sleeps", 3600)
    await server.until_recorded(instance_id, "TimerCreated")
    await server.executor.stop()
    server.clock.advance(3600)
    await server.executor.start()

    assert (await server.until(instance_id, "Completed")).output is True


async def test_a_store_has_one_owner(functions: SdkFunctions, tmp_path: Path) -> None:
    first = DurableExecutor(tmp_path / "s.sqlite", functions)
    second = DurableExecutor(tmp_path / "s.sqlite", functions)
    await first.start()
    with pytest.raises(StoreInUse, match="in use by another process"):
        await second.start()
    await first.stop()
    await second.start()
    await second.stop()


async def test_a_file_of_another_schema_is_refused(functions: SdkFunctions, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "s.sqlite") as other:
        other.execute("PRAGMA user_version = 99")
    other.close()

    with pytest.raises(ValueError, match="schema version 99"):
        await DurableExecutor(tmp_path / "s.sqlite", functions).start()


async def test_an_instance_whose_orchestrator_is_gone_fails_clearly(
    functions: SdkFunctions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with DurableServer(functions, tmp_path / "s.sqlite") as server:
        instance_id = await server.start("waits_for_event", "go")
        await server.until(instance_id, "Running")
        left = {name for name in functions.orchestrators() if name != "waits_for_event"}
        monkeypatch.setattr(functions, "orchestrators", lambda: left)
        await server.client.raise_event(instance_id, "go")

        status = await server.until(instance_id, "Failed")

    assert status.output.startswith("The function 'waits_for_event' doesn't exist")
