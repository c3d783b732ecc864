"""The contracts of `IdempotencyStore` and `UserLimitStore`, in memory and with Azurite, also with racing
instances.
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from shared.access.idempotency import Claim, IdempotencyStore, claim_key
from shared.access.limits import admit, slot_of_run
from shared.access.models import UserContext
from shared.access.user_limit_store import Slot, UserLimits, UserLimitStore
from shared.platform.errors import ConflictError, DependencyError, TooManyRequestsError, TooManyRunsError
from shared.platform.tables import Table
from shared.wiring import Connections, Services
from tests.contract.clients.conftest import Connect, table_name
from tests.fakes.services import fake_services, fake_settings
from tests.servers import Azurite

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANNA = UserContext(user_id="anna")
STRANGE = "a/b\\c#?%\x01 Ünïcode \ud83d"


@pytest.fixture
def claims(table: Table) -> IdempotencyStore:
    return IdempotencyStore(table)


@pytest.fixture
def limits(table: Table) -> UserLimitStore:
    return UserLimitStore(table)


def claim(resource_id: str, created_at: datetime = NOW) -> Claim:
    return Claim(route="POST /chat", body="digest", resource_id=resource_id, created_at=created_at)


async def test_the_first_claim_of_a_key_stays(claims: IdempotencyStore) -> None:
    assert await claims.get("anna", "key") is None
    first = await claims.write("anna", "key", claim("one"))
    with pytest.raises(ConflictError):
        await claims.write("anna", "key", claim("two"))
    assert await claims.get("anna", "key") == first
    await claims.write("ben", "key", claim("two"))  # keys of different people don't conflict
    await claims.write("anna", STRANGE, claim("three"))
    await claims.write(STRANGE, STRANGE, claim("four"))
    stored_claim = await claims.get("anna", STRANGE)
    assert stored_claim is not None
    assert (
        stored_claim.resource_id,
        stored_claim.created_at,
        stored_claim.content,
        stored_claim.is_done,
    ) == ("three", NOW, None, False)


async def test_a_claim_is_replaced_by_who_has_read_it_last(claims: IdempotencyStore) -> None:
    first = await claims.write("anna", "key", claim("one"))
    done = first.model_copy(update={"is_done": True, "content": "digest of a file"})
    second = await claims.write("anna", "key", done)
    assert await claims.get("anna", "key") == second
    with pytest.raises(ConflictError):
        await claims.write("anna", "key", first)
    await claims.delete("anna", "key")
    await claims.delete("anna", "key")
    with pytest.raises(ConflictError):
        await claims.write("anna", "key", second)


async def test_old_claims_go_so_many_at_a_time(claims: IdempotencyStore) -> None:
    for number in range(3):
        await claims.write("anna", f"old {number}", claim("old", NOW - timedelta(hours=1)))
    await claims.write("ben", "new", claim("new"))
    assert await claims.delete_before(NOW, 2) == 2
    assert await claims.delete_before(NOW, 2) == 1
    assert await claims.delete_before(NOW, 2) == 0
    assert await claims.get("ben", "new") is not None


async def test_what_is_used_up_is_kept_by_person(limits: UserLimitStore) -> None:
    assert await limits.read("anna") == UserLimits()
    state = UserLimits(whole_at=NOW, slots=(Slot(work_id="run", until=NOW),))
    first = await limits.write("anna", state)
    assert await limits.read("anna") == first
    assert await limits.read("ben") == UserLimits()
    with pytest.raises(ConflictError):
        await limits.write("anna", state)  # this state was read before the first write
    second = await limits.write("anna", first.model_copy(update={"slots": ()}))
    with pytest.raises(ConflictError):
        await limits.write("anna", first)
    assert await limits.read("anna") == second
    await limits.write(STRANGE, state)


async def test_rows_that_nobody_wrote_to_go(limits: UserLimitStore) -> None:
    first = await limits.write("anna", UserLimits(whole_at=NOW))
    moment = datetime.now(UTC)
    assert await limits.delete_before(moment - timedelta(hours=1), 10) == 0
    assert await limits.delete_before(moment + timedelta(hours=1), 10) == 1
    assert await limits.read("anna") == UserLimits()
    with pytest.raises(ConflictError):
        await limits.write("anna", first)


@pytest.mark.contract
async def test_a_row_that_is_not_understood_is_said_and_lets_in(to_storage: Connections) -> None:
    table = Table(to_storage.tables, table_name("limits"))
    store = UserLimitStore(table)
    await store.write("anna", UserLimits())
    (row,) = [dict(row) async for row in table.query()]
    await table.put({**row, "state": "{spoiled"})
    with pytest.raises(DependencyError, match="cannot be read"):
        await store.read("anna")
    services = fake_services(user_limits=store)
    assert await admit(ANNA, services.settings, services.user_limits) is None


@pytest.fixture
def instances(azurite: Azurite, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> list[Services]:
    """Return the services of three processes over one storage account, which may be slow here."""
    monkeypatch.setattr("shared.access.user_limit_store.LIMIT_S", 100.0)
    names = table_name("limits"), table_name("claims")
    services: list[Services] = []
    for _ in range(3):
        to = connect(DocumentsStorage=azurite.connection_string)
        services.append(
            fake_services(
                settings=fake_settings(rate_limit_per_minute=20, max_concurrent_runs=4),
                user_limits=UserLimitStore(Table(to.tables, names[0])),
                idempotency=IdempotencyStore(Table(to.tables, names[1])),
            )
        )
    return services


@pytest.mark.contract
async def test_instances_share_slots(instances: list[Services]) -> None:
    async def begin(number: int) -> bool:
        services = instances[number % 3]
        try:
            await admit(
                ANNA,
                services.settings,
                services.user_limits,
                slot=slot_of_run(f"run {number}", services.settings),
            )
        except TooManyRunsError:
            return False
        return True

    assert sum(await asyncio.gather(*(begin(number) for number in range(12)))) == 4


@pytest.mark.contract
async def test_instances_share_calls(instances: list[Services]) -> None:
    async def call(number: int) -> bool:
        try:
            services = instances[number % 3]
            await admit(ANNA, services.settings, services.user_limits)
        except TooManyRequestsError:
            return False
        return True

    began = time.monotonic()
    let_in = sum(await asyncio.gather(*(call(number) for number in range(30))))
    assert 20 <= let_in <= min(29, 21 + (time.monotonic() - began) / 3)  # a call becomes available every 3 s


@pytest.mark.contract
async def test_of_many_first_requests_under_one_key_one_gives_the_id(instances: list[Services]) -> None:
    async def claimed(number: int) -> tuple[str, bool]:
        key_claim = await claim_key(
            "key",
            ANNA,
            instances[number % 3].idempotency,
            route="POST /chat",
            body="x",
            resource_id=f"{number}",
        )
        return key_claim.resource_id, key_claim.is_repeat

    results = await asyncio.gather(*(claimed(number) for number in range(9)))
    assert len({resource_id for resource_id, _ in results}) == 1
    assert [is_repeat for _, is_repeat in results].count(False) == 1
