"""The contract of `BotTurnStore`, in memory and with Azurite."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.platform.errors import ConflictError
from shared.platform.tables import Table
from shared.teams.models import BotConversation, BotTurn
from shared.teams.store import BotTurnStore
from shared.wiring import Connections
from tests.contract.clients.conftest import table_name

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLACE = BotConversation(
    channel="msteams", service_url="https://smba.example/", conversation_id="a:1/\\#?%", bot_id="28:bot"
)
KEY = "k" * 32
STRANGE = "a/b\\c#?%\x01 Ünïcode"


@pytest.fixture
def turns(table: Table) -> BotTurnStore:
    return BotTurnStore(table)


def turn(owner_id: str = "anna", **fields: str) -> BotTurn:
    return BotTurn.model_validate({"conversation": PLACE, "owner_id": owner_id, "updated_at": NOW, **fields})


async def test_what_is_remembered_comes_back_as_it_was(turns: BotTurnStore) -> None:
    assert await turns.get(KEY, STRANGE) is None
    stored_turn = await turns.put(KEY, turn(STRANGE, thread_id="t", waiting_run_id="r"))
    assert stored_turn.revision
    assert await turns.get(KEY, STRANGE) == stored_turn
    assert await turns.get("other", STRANGE) is None
    assert await turns.get(KEY, "ben") is None


async def test_two_that_change_the_same_do_not_lose_a_change(turns: BotTurnStore) -> None:
    first = await turns.put(KEY, turn())
    with pytest.raises(ConflictError):
        await turns.put(KEY, turn(thread_id="of another"))
    second = await turns.put(KEY, first.model_copy(update={"thread_id": "t"}))
    with pytest.raises(ConflictError):
        await turns.put(KEY, first)
    assert second.revision != first.revision
    current_turn = await turns.get(KEY, "anna")
    assert current_turn is not None
    assert current_turn.thread_id == "t"


async def test_what_was_forgotten_meanwhile_does_not_come_back(turns: BotTurnStore) -> None:
    stored_turn = await turns.put(KEY, turn())
    await turns.forget("anna")
    with pytest.raises(ConflictError):
        await turns.put(KEY, stored_turn)


async def test_a_message_leads_to_its_run(turns: BotTurnStore) -> None:
    await turns.note_message(KEY, STRANGE, "run", "anna")
    await turns.note_message(KEY, STRANGE, "run", "anna")
    assert await turns.run_of_message(KEY, STRANGE) == ("run", "anna")
    assert await turns.run_of_message("other", STRANGE) is None
    assert await turns.run_of_message(KEY, "unknown") is None


async def test_forgetting_takes_one_owner_and_nobody_else(turns: BotTurnStore) -> None:
    for owner in ("anna", "ben"):
        await turns.put(KEY, turn(owner))
        await turns.note_message(KEY, f"to {owner}", "run", owner)
    await turns.forget("anna")
    assert await turns.get(KEY, "anna") is None
    assert await turns.run_of_message(KEY, "to anna") is None
    assert await turns.get(KEY, "ben") is not None
    assert await turns.run_of_message(KEY, "to ben") == ("run", "ben")
    await turns.forget("nobody")


async def test_what_nobody_wrote_to_for_long_goes(turns: BotTurnStore) -> None:
    await turns.put(KEY, turn())
    assert await turns.delete_before(NOW - timedelta(days=1), 10) == 0
    assert await turns.delete_before(datetime.now(UTC) + timedelta(days=365), 10) == 1
    assert await turns.get(KEY, "anna") is None


@pytest.mark.contract
async def test_a_row_that_is_not_understood_gives_way(to_storage: Connections) -> None:
    table = Table(to_storage.tables, table_name("turns"))
    turns = BotTurnStore(table)
    stored_turn = await turns.put(KEY, turn())
    (row,) = [entity async for entity in table.query()]
    await table.replace({**row, "turn": '{"owner_id": 1}'})
    assert stored_turn.revision
    assert await turns.get(KEY, "anna") is None
    assert await turns.put(KEY, turn(thread_id="t"))
