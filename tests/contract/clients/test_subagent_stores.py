"""The contract of `ControlStore`, in memory and with Azurite, also with racing instances."""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta

import pytest

from shared.answering.control import ControlStore, begin, grant, read_control, settle
from shared.answering.control_state import ControlState, Lease
from shared.answering.subagent_models import SubagentEnd
from shared.platform.errors import ConflictError, DependencyError, GroundworkError
from shared.platform.tables import MAX_TEXT_CHARS, Table
from shared.wiring import Connections, Services
from tests.contract.clients.conftest import NOWHERE, Connect, table_name
from tests.fakes.services import fake_services, fake_settings
from tests.servers import Azurite

HOUR = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def control(table: Table) -> ControlStore:
    return ControlStore(table)


async def test_nobody_has_written_yet(control: ControlStore) -> None:
    assert await control.read() == ControlState()


async def test_what_is_written_is_read(control: ControlStore) -> None:
    lease = Lease(child_id="run:s001c0", expires_at=HOUR, has_begun=True, is_probe=True)
    first = await control.write(ControlState(leases=(lease,), outcomes=(True, False)))
    assert await control.read() == first
    second = await control.write(first.model_copy(update={"leases": (), "opened_at": HOUR}))
    assert await control.read() == second
    assert second.revision != first.revision
    assert second.opened_at == HOUR


async def test_who_read_before_another_wrote_is_refused(control: ControlStore) -> None:
    await control.write(ControlState(outcomes=(True,)))
    with pytest.raises(ConflictError):
        await control.write(ControlState(outcomes=(False,)))  # this state was read before the first write
    read = await control.read()
    await control.write(read.model_copy(update={"outcomes": (True, True)}))
    with pytest.raises(ConflictError):
        await control.write(read.model_copy(update={"outcomes": (False,)}))
    assert (await control.read()).outcomes == (True, True)


async def test_a_state_longer_than_one_property_is_read_whole_and_shrinks_again(
    control: ControlStore,
) -> None:
    leases = tuple(Lease(child_id=f"run:{number}", expires_at=HOUR) for number in range(500))
    long = await control.write(ControlState(leases=leases))
    assert len(long.model_dump_json()) > MAX_TEXT_CHARS
    assert await control.read() == long
    short = await control.write(long.model_copy(update={"leases": leases[:1]}))
    assert await control.read() == short


@pytest.mark.contract
async def test_a_row_that_is_not_understood_starts_none_and_costs_no_answer(to_storage: Connections) -> None:
    table = Table(to_storage.tables, table_name("control"))
    services = fake_services(subagent_control=ControlStore(table))
    now = datetime.now(UTC)
    assert await grant(services.settings, services.subagent_control, {"run": now}, now)
    await table.put({"PartitionKey": "subagents", "RowKey": "subagents", "state_000": "{spoiled"})
    with pytest.raises(DependencyError, match="cannot be read"):
        await read_control(services.settings, services.subagent_control)
    with pytest.raises(DependencyError, match="cannot be read"):
        await grant(services.settings, services.subagent_control, {"run": now}, now)
    await begin(services.subagent_control, "run")
    await settle(services.settings, services.subagent_control, [SubagentEnd(child_id="run", status="done")])
    await table.delete("subagents", "subagents")
    assert (
        await read_control(services.settings, services.subagent_control)
    ).free == services.settings.subagents.max_active


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow for slow storage in this test. In production, a sub-agent is omitted after a short wait."""
    monkeypatch.setattr("shared.answering.control._ANSWER_LIMIT_S", 100.0)
    monkeypatch.setattr("shared.answering.control._RECORD_LIMIT_S", 100.0)


class Instances:
    """Processes that share one table, each with its own connections."""

    def __init__(self, azurite: Azurite, connect: Connect, count: int, **limits: int) -> None:
        name = table_name("control")
        self.settings = fake_settings(**limits)
        self.services = [
            fake_services(
                settings=self.settings,
                subagent_control=ControlStore(
                    Table(connect(DocumentsStorage=azurite.connection_string).tables, name)
                ),
            )
            for _ in range(count)
        ]
        self._next = itertools.cycle(self.services)

    def next(self) -> Services:
        return next(self._next)


@pytest.mark.contract
async def test_instances_that_race_never_have_more_at_work_than_allowed(
    azurite: Azurite, connect: Connect
) -> None:
    instances = Instances(azurite, connect, 4, subagents_max_active=5)
    at_work: set[str] = set()
    most, done, refused, too_busy = 0, 0, 0, 0

    async def one(number: int) -> None:
        nonlocal most, done, refused, too_busy
        services, name = instances.next(), f"run{number}:s001c0"
        try:
            allowed = await grant(
                services.settings,
                services.subagent_control,
                {name: datetime.now(UTC) + timedelta(seconds=300)},
                datetime.now(UTC),
            )
        except GroundworkError:  # the policy starts no sub-agent in this case
            too_busy += 1
            return
        if not allowed:
            refused += 1
            return
        at_work.add(name)
        most = max(most, len(at_work))
        await begin(services.subagent_control, name)
        await asyncio.sleep(0.02)
        at_work.discard(name)
        await settle(
            services.settings, services.subagent_control, [SubagentEnd(child_id=name, status="done")]
        )
        done += 1

    await asyncio.gather(*(one(number) for number in range(40)))
    assert most <= 5
    assert done >= 5
    assert done + refused + too_busy == 40
    services = instances.next()
    left = await read_control(services.settings, services.subagent_control)
    assert (left.active, left.waiting, left.free) == (0, 0, 5)


@pytest.mark.contract
async def test_of_instances_that_race_exactly_one_tries_a_paused_circuit(
    azurite: Azurite, connect: Connect
) -> None:
    instances = Instances(azurite, connect, 4, circuit_breaker_cooldown_seconds=1)
    long_ago = datetime.now(UTC) - timedelta(seconds=5)
    await instances.next().subagent_control.write(ControlState(opened_at=long_ago))

    async def ask(number: int) -> bool:
        now = datetime.now(UTC)
        try:
            services = instances.next()
            return await grant(
                services.settings,
                services.subagent_control,
                {f"run{number}": now + timedelta(seconds=300)},
                now,
            )
        except GroundworkError:
            return False

    assert sum(await asyncio.gather(*(ask(number) for number in range(20)))) == 1
    (probe,) = (await instances.next().subagent_control.read()).leases
    services = instances.next()
    await settle(
        services.settings, services.subagent_control, [SubagentEnd(child_id=probe.child_id, status="done")]
    )
    services = instances.next()
    assert (
        await read_control(services.settings, services.subagent_control)
    ).free == instances.settings.subagents.max_active


@pytest.mark.contract
async def test_storage_that_is_away_is_an_error_of_ours_and_costs_no_answer(connect: Connect) -> None:
    away = f"DefaultEndpointsProtocol=http;AccountName=a;AccountKey=aaaa;TableEndpoint={NOWHERE}/a"
    table = Table(connect(DocumentsStorage=away).tables, "control", timeout_s=1)
    services = fake_services(subagent_control=ControlStore(table))
    now = datetime.now(UTC)
    with pytest.raises(DependencyError):
        await read_control(services.settings, services.subagent_control)
    with pytest.raises(DependencyError):
        await grant(services.settings, services.subagent_control, {"run": now}, now)
    await begin(services.subagent_control, "run")
    await settle(services.settings, services.subagent_control, [SubagentEnd(child_id="run", status="done")])
