"""A PostgreSQL database is queried on behalf of its principals only, and in no other way."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.documents.figures import readable_documents
from shared.platform.concurrency import run_together
from shared.platform.database_sources import DatabaseSource
from shared.platform.errors import DependencyError, GroundworkError, InvalidQueryError
from shared.tables.databases import Databases
from shared.tables.models import Table
from shared.tables.postgres import PostgresEngine, Rows
from shared.tools.base import ToolResult
from shared.tools.registry import Binding, bound_tool, run_query_of
from shared.tools.table_tools import is_computed, table_result
from shared.wiring import Services
from tests.fakes.services import fake_services
from tests.postgres_server import SECRET, postgres_shop
from tests.unit.tables.test_postgres_guard import ATTACKS

pytestmark = pytest.mark.e2e
ANNA = UserContext(user_id="anna", groups=("traders",))
BOB = UserContext(user_id="bob", groups=("guests",))
TOTALS = [["Harbour", 3690], ["Quarry", 3630], ["Meadow", 3570]]
SQL = "SELECT region, sum(amount) AS total FROM {} GROUP BY region ORDER BY total DESC"


async def no_token() -> str:
    raise AssertionError("the source has a password")


@pytest.fixture(scope="module")
def shop() -> Iterator[DatabaseSource]:
    with postgres_shop(("traders",)) as source:
        yield source


def services_with(*sources: DatabaseSource) -> Services:
    """Return the services of an app with these databases."""
    services = fake_services()
    text = json.dumps([source.model_dump() for source in sources])
    databases = Databases(sources, lambda source: PostgresEngine(source, no_token))
    return replace(services, settings=services.settings.changed(databases=text), databases=databases)


@pytest.fixture
def shop_services(shop: DatabaseSource) -> Services:
    return services_with(shop)


async def used(services: Services, tool: str, user: UserContext, **arguments: Any) -> ToolResult:
    return await bound_tool(tool, services, user).execute(**arguments)


async def test_a_principal_finds_a_view_and_adds_up_a_column(shop_services: Services) -> None:
    for query in ("", "orders by region"):
        (table,) = (await used(shop_services, "list_tables", ANNA, query=query))["tables"]
        assert (table["doc_id"], table["filename"], table["database"]) == ("db-shop", "shop", "PostgreSQL")
    columns = {column["name"]: (column["type"], column["samples"]) for column in table["columns"]}
    assert columns["amount"] == ("number", [])
    assert sorted(columns["region"][1]) == ["Harbour", "Meadow", "Quarry"]
    result = await used(
        shop_services, "run_sql", ANNA, sql=SQL.format(table["name"]), table_ids=[table["table_id"]]
    )
    assert (result["success"], result["rows"]) == (True, TOTALS)
    assert result["sql_in_words"].startswith("Region, the sum of amount from “orders”")


@pytest.mark.attack("access")
async def test_others_learn_neither_the_name_nor_a_number(shop_services: Services) -> None:
    narrowed = ANNA.model_copy(update={"within": {"department": ("Sales",)}})
    (table,) = (await used(shop_services, "list_tables", ANNA))["tables"]
    for user in (BOB, narrowed):
        for query in ("", "orders by region"):
            assert (await used(shop_services, "list_tables", user, query=query))["tables"] == []
        sql, ids = SQL.format(table["name"]), [table["table_id"]]
        foreign = await used(shop_services, "run_sql", user, sql=sql, table_ids=ids)
        absent = await used(shop_services, "run_sql", user, sql=sql, table_ids=["db-none.1"])
        assert foreign["type"] == "DocumentNotFoundError"
        assert str(foreign).replace("db-shop", "db-none") == str(absent)
        assert await readable_documents(["db-shop"], user, shop_services) == frozenset()
    assert await Binding(shop_services, ANNA, {"department": "Sales"}).tables.newest() == []
    assert await readable_documents(["db-shop"], ANNA, shop_services) == {"db-shop"}


async def test_a_result_is_computed_only_while_it_may_be_read_and_is_the_same(
    shop_services: Services,
) -> None:
    binding = Binding(shop_services, ANNA)
    run = run_query_of(binding)
    (table,) = await binding.tables.newest()
    result = table_result(await run(SQL.format(table.name), [table]), [table])
    assert await is_computed(result, binding.tables, run)
    (first, *others) = result.rows
    changed = result.model_copy(update={"rows": ((first[0], 1), *others)})
    assert not await is_computed(changed, binding.tables, run)
    with pytest.raises(GroundworkError):
        await is_computed(result, Binding(shop_services, BOB).tables, run)


async def test_two_databases_are_not_joined(shop: DatabaseSource) -> None:
    both = services_with(shop, shop.model_copy(update={"name": "depot"}))
    tables = (await used(both, "list_tables", ANNA))["tables"]
    ids = [table["table_id"] for table in tables]
    assert ids == ["db-shop.1", "db-depot.1"]
    first, second = (table["name"] for table in tables)
    result = await used(both, "run_sql", ANNA, sql=f"SELECT 1 FROM {first}, {second}", table_ids=ids)
    assert result["type"] == "InvalidQueryError"
    result = await used(both, "run_sql", ANNA, sql=f"SELECT count(*) FROM {second}", table_ids=ids)
    assert (result["rows"], [table["doc_id"] for table in result["tables"]]) == ([[120]], ["db-depot"])


@pytest.mark.attack("sql")
async def test_no_attack_passes(shop_services: Services) -> None:
    binding = Binding(shop_services, ANNA)
    (table,) = await binding.tables.newest()
    run = run_query_of(binding)
    for sql in ATTACKS:
        with pytest.raises(InvalidQueryError) as refused:
            await run(sql.replace("orders_1", table.name), [table])
        assert SECRET not in str(refused.value), sql
    names = ", ".join(f"{table.name} t{number}" for number in range(6))
    with pytest.raises(GroundworkError):
        await run(f"SELECT count(*) FROM {names}", [table])


@pytest.mark.attack("sql")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; DROP VIEW reporting.orders",
        "SELECT 1) AS r(c0); DELETE FROM public.sales; SELECT (1",
        "SELECT 1) AS r(c0)) TO '/tmp/x'; --",
        "SELECT word FROM public.secret",
        "WITH x AS (DELETE FROM public.sales RETURNING 1) SELECT * FROM x",
        "SELECT pg_sleep(60)",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT rolpassword FROM pg_authid",
        "SELECT query_to_xml('SELECT * FROM public.secret', true, true, '')",
        "SELECT repeat('x', 2000000)",
    ],
)
async def test_what_passed_the_guard_would_still_fail(shop: DatabaseSource, sql: str) -> None:
    engine = PostgresEngine(shop, no_token)
    with pytest.raises(GroundworkError) as refused:
        await engine.rows(sql, 1)
    assert SECRET not in str(refused.value)
    rows, _ = await engine.rows("SELECT count(*) FROM reporting.orders", 1)
    assert rows == ((120,),)


@pytest.mark.attack("sql")
async def test_nothing_is_left_behind(shop: DatabaseSource) -> None:
    engine = PostgresEngine(shop, no_token)
    # PostgreSQL 15 creates a large object even in a read-only transaction. It must never be committed.
    with suppress(GroundworkError):
        await engine.rows("SELECT lo_create(0)", 1)
    rows, _ = await engine.rows("SELECT count(*) FROM pg_largeobject_metadata", 1)
    assert rows == ((0,),)


@pytest.mark.attack("sql")
async def test_a_backslash_ends_no_text(shop_services: Services) -> None:
    binding = Binding(shop_services, ANNA)
    (table,) = await binding.tables.newest()
    sql = (
        r"SELECT 'x\', ' , (SELECT count(*) FROM pg_catalog.pg_roles) "
        f"FROM reporting.orders LIMIT 1) AS r(c0,c1) --' FROM {table.name} LIMIT 1"
    )
    result = await run_query_of(binding)(sql, [table])
    assert result.rows[0][0] == "x\\"


@pytest.mark.attack("sql")
async def test_an_error_says_nothing_of_rows_that_a_view_leaves_out(shop: DatabaseSource) -> None:
    engine = PostgresEngine(shop, no_token)
    rows, _ = await engine.rows("SELECT count(*) FROM reporting.some", 1)
    assert rows == ((0,),)
    sql = "SELECT count(*) FROM reporting.some WHERE CASE WHEN word LIKE 's%' THEN word::int END = 1"
    with pytest.raises(InvalidQueryError) as refused:
        await engine.rows(sql, 1)
    assert SECRET not in str(refused.value)


async def test_texts_are_the_same_in_a_database_of_another_encoding(shop: DatabaseSource) -> None:
    old = PostgresEngine(shop.model_copy(update={"database": "old"}), no_token)
    rows, _ = await old.rows("SELECT length('Köln'), 'Köln'", 2)
    assert rows == ((4, "Köln"),)


async def test_a_password_leaves_the_machine_only_encrypted(shop: DatabaseSource) -> None:
    # Another notation of 127.0.0.1, which counts as a remote host.
    plain = shop.model_copy(update={"host": "127.1"})
    with pytest.raises(DependencyError):
        await PostgresEngine(plain, no_token).rows("SELECT 1", 1)


class CountingEngine(PostgresEngine):
    """A slow database. `most` is the largest number of queries and catalogue reads that ran at the same
    time.
    """

    def __init__(self, source: DatabaseSource) -> None:
        super().__init__(source, no_token)
        self.at_work, self.most, self.catalogs = 0, 0, 0

    async def tables(self) -> list[Table]:
        self.catalogs += 1
        await asyncio.sleep(0.05)
        return await super().tables()

    async def rows(self, sql: str, column_count: int) -> tuple[Rows, bool]:
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        await asyncio.sleep(1)
        self.at_work -= 1
        return ((1,),), False


async def test_many_questions_take_few_connections(shop: DatabaseSource) -> None:
    engine = CountingEngine(shop)
    services = replace(services_with(shop), databases=Databases([shop], lambda _: engine))
    binding = Binding(services, ANNA)
    ((table,), *_) = await run_together(*(binding.tables.newest() for _ in range(6)))
    run = run_query_of(binding)
    await run_together(*(run(f"SELECT count(*) FROM {table.name}", [table]) for _ in range(12)))
    assert (engine.catalogs, engine.most) == (1, 4)


async def test_nobody_waits_twice_for_a_database_that_is_down(shop: DatabaseSource) -> None:
    now = [0.0]
    engine = CountingEngine(shop.model_copy(update={"port": 9}))
    databases = Databases([shop], lambda _: engine, lambda: now[0])
    for now[0], catalogs in ((0, 1), (19, 1), (21, 2)):
        with pytest.raises(DependencyError):
            await databases.tables("db-shop")
        assert engine.catalogs == catalogs


async def test_a_long_result_is_cut(shop: DatabaseSource) -> None:
    rows, is_cut = await PostgresEngine(shop, no_token).rows("SELECT * FROM generate_series(1, 5000)", 1)
    assert (len(rows), is_cut) == (1000, True)


async def test_a_database_that_is_down_hides_no_other(shop: DatabaseSource) -> None:
    down = services_with(shop, shop.model_copy(update={"name": "gone", "port": 9}))
    for query in ("", "orders"):
        listed = await used(down, "list_tables", ANNA, query=query)
        assert [table["doc_id"] for table in listed["tables"]] == ["db-shop"]
    result = await used(down, "run_sql", ANNA, sql="SELECT 1", table_ids=["db-gone.1"])
    assert result["type"] == "NetworkError"
    assert "127.0.0.1" not in str(result)
