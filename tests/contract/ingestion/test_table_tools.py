"""Tables of uploaded files are listed and queried by users who may read them."""

import time
from dataclasses import replace
from typing import Any

import pytest
from starlette.requests import Request

from functions.http.mcp_document_tools import ListTables, RunSql
from functions.http.mcp_tool import McpCall
from shared.access.daily_use import Usage
from shared.access.limits import charge, use_of_today
from shared.access.models import UserContext
from shared.tools import table_tools
from shared.tools.base import ToolResult
from shared.tools.registry import bound_tool
from shared.tools.table_tools import SqlDraft
from shared.wiring import Services
from tests.contract.ingestion.driving import drop, ingest, state_of, unique
from tests.fakes.models import ScriptedChatModel

pytestmark = pytest.mark.contract
ANNA, BOB = UserContext(user_id="anna"), UserContext(user_id="bob")
SALES = "Region,Revenue,Share\nNorth,120,60%\nSouth,80,40%\nNorth,10,\n"


async def dropped(services: Services, content: str = SALES, acl: str = "anna") -> dict[str, Any]:
    """Return a file's table as its reader finds it."""
    name = unique(".csv")
    await drop(services, name, content, {"acl": acl})
    await ingest(services, name)
    doc_id = (await state_of(services, name)).doc_id
    listed = await used(services, "list_tables", ANNA)
    (table,) = [one for one in listed["tables"] if one["doc_id"] == doc_id]
    return dict(table)


async def used(services: Services, tool: str, user: UserContext, **arguments: Any) -> ToolResult:
    return await bound_tool(tool, services, user).execute(**arguments)


def draft(sql: str, unanswerable: str = "") -> SqlDraft:
    return SqlDraft(sql=sql, assumptions=("Revenue is in EUR.",), unanswerable=unanswerable)


async def test_a_reader_finds_a_table_and_adds_up_a_column(services: Services) -> None:
    table = await dropped(services)
    assert [column["name"] for column in table["columns"]] == ["region", "revenue", "share"]
    listing = await used(services, "list_tables", ANNA, query="revenue by region")
    assert [one["table_id"] for one in listing["tables"]] == [table["table_id"]]
    sql = f"SELECT region, SUM(revenue) AS total FROM {table['name']} GROUP BY region ORDER BY total DESC"
    result = await used(services, "run_sql", ANNA, sql=sql, table_ids=[table["table_id"]])
    assert (result["success"], result["columns"]) == (True, ["region", "total"])
    assert result["rows"] == [["North", 130], ["South", 80]]
    assert result["source_rows"] == [2, 3, 4]
    assert result["tables"][0]["content_hash"]


async def test_two_files_are_compared(services: Services) -> None:
    sales = await dropped(services)
    plan = await dropped(services, "Region,Target\nNorth,100\nSouth,100\n")
    sql = (
        f"SELECT p.region, SUM(s.revenue) - p.target AS ahead FROM {plan['name']} p "
        f"JOIN {sales['name']} s ON s.region = p.region GROUP BY p.region, p.target ORDER BY ahead DESC"
    )
    tables = [sales["table_id"], plan["table_id"]]
    result = await used(services, "run_sql", ANNA, sql=sql, table_ids=tables)
    assert result["rows"] == [["North", 30], ["South", -20]]


@pytest.mark.attack("sql")
async def test_a_foreign_table_is_as_one_that_there_is_not(services: Services) -> None:
    table = await dropped(services)
    mine = await dropped(services, "Region,Target\nNorth,1\n", "anna,bob")
    for query in ("", "revenue by region"):
        listed = await used(services, "list_tables", BOB, query=query)
        assert [one["table_id"] for one in listed["tables"]] == [mine["table_id"]]
    sql = f"SELECT * FROM {table['name']}"
    absent_id = f"{'0' * 24}.1"
    for tool, arguments in (("run_sql", {"sql": sql}), ("query_structured_data", {"question": "Revenue?"})):
        foreign = await used(services, tool, BOB, table_ids=[table["table_id"]], **arguments)
        absent = await used(services, tool, BOB, table_ids=[absent_id], **arguments)
        assert foreign["type"] == "DocumentNotFoundError"
        assert str(foreign).replace(table["table_id"], "ID") == str(absent).replace(absent_id, "ID")
    reached = await used(services, "run_sql", BOB, sql=sql, table_ids=[mine["table_id"]])
    assert reached["type"] == "InvalidQueryError"


async def test_an_assistant_calculates_with_the_rights_of_its_person(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.wiring.get_services", lambda: services)
    table = await dropped(services)
    arguments = {"sql": f"SELECT MAX(revenue) FROM {table['name']}", "table_ids": [table["table_id"]]}
    request = Request({"type": "http", "method": "POST", "path": "/api/mcp", "headers": []})
    client: Any = None  # only tools that start orchestrations use the client
    listed = await ListTables(McpCall(request, ANNA, services, client, "")).execute()
    assert table["table_id"] in [one["table_id"] for one in listed["tables"]]
    result = await RunSql(McpCall(request, ANNA, services, client, "")).execute(**arguments)
    assert result["rows"] == [[120]]
    refused = await RunSql(McpCall(request, BOB, services, client, "")).execute(**arguments)
    assert refused["type"] == "DocumentNotFoundError"


async def test_sql_that_fails_is_drafted_once_more_with_the_reason(services: Services) -> None:
    table = await dropped(services)
    model = ScriptedChatModel(
        draft(f"SELECT SUM(turnover) FROM {table['name']}"),
        draft(f"SELECT SUM(revenue) FROM {table['name']}"),
    )
    result = await used(
        replace(services, chat_model=model), "query_structured_data", ANNA, question="Total revenue?"
    )
    assert (result["rows"], result["assumptions"]) == ([[210]], ["Revenue is in EUR."])
    assert "turnover" in model.prompts[1].user


async def test_a_query_that_finds_nothing_is_drafted_again_with_the_values(services: Services) -> None:
    table = await dropped(services)
    sql = f"SELECT SUM(revenue) FROM {table['name']} WHERE region = "
    model = ScriptedChatModel(draft(f"{sql}'north'"), draft(f"{sql}'North'"))
    scripted_services = replace(services, chat_model=model)
    result = await used(
        scripted_services,
        "query_structured_data",
        ANNA,
        question="Revenue of north?",
        table_ids=[table["table_id"]],
    )
    assert result["rows"] == [[130]]
    assert "South" in model.prompts[1].user.split("<problem>")[1]


async def test_a_question_that_tables_cannot_answer_is_refused(services: Services) -> None:
    await dropped(services)
    model = ScriptedChatModel(draft("", "There is no column of costs."))
    scripted_services = replace(services, chat_model=model)
    result = await used(scripted_services, "query_structured_data", ANNA, question="Total costs?")
    assert result["type"] == "InvalidQueryError"
    assert "no column of costs" in result["error"]


@pytest.mark.attack("sql")
async def test_a_query_that_looks_at_no_clock_is_ended_and_charged(services: Services) -> None:
    table = await dropped(services, f"Name,Amount\n{'a' * 30_000},3\n")
    name, table_id = table["name"], table["table_id"]
    searches = ", ".join(f"instr(h, n || {number})" for number in range(150))
    # The query would take 16 s on a fast processor, and is killed after 5 s. SQLite checks the clock only
    # after more steps than this query has.
    row = f"SELECT name || name || name AS h, name AS n FROM {name}"
    sql = f"SELECT {searches} FROM ({' UNION ALL '.join([row] * 5)})"
    charged_before = await parser_seconds(services, ANNA)
    began = time.monotonic()
    ended = await used(services, "run_sql", ANNA, sql=sql, table_ids=[table_id])
    assert ended["type"] == "TimeoutError"
    charged = await parser_seconds(services, ANNA) - charged_before
    assert 4 < charged < time.monotonic() - began + 1  # the time to read the file may be charged as well
    again = await used(services, "run_sql", ANNA, sql=f"SELECT SUM(amount) FROM {name}", table_ids=[table_id])
    assert again["rows"] == [[3]]


@pytest.mark.attack("sql")
async def test_whoever_has_used_up_their_parser_time_calculates_no_more_today(services: Services) -> None:
    table = await dropped(services)
    limits = services.settings.limits.model_copy(update={"max_daily_parser_seconds": 0.001})
    settings = services.settings.model_copy(update={"limits": limits})
    sql, few = f"SELECT SUM(revenue) FROM {table['name']}", replace(services, settings=settings)
    await charge("anna", Usage(parser_seconds=1), services.user_limits)
    refused = await used(few, "run_sql", ANNA, sql=sql, table_ids=[table["table_id"]])
    assert (refused["type"], "limit" in refused["error"]) == ("BudgetExceededError", True)


async def parser_seconds(services: Services, user: UserContext) -> float:
    views = await use_of_today(user.user_id, services.settings, services.user_limits)
    return next((view.used for view in views if view.resource == "parser_seconds"), 0.0)


async def test_cells_without_a_value_are_named_as_an_assumption(services: Services) -> None:
    readings = "Well;Value\nW1;1.234,5\nW1;1.198,0\nW1;1.240,0\nW2;987,25\nW2;< 0,5\nW2;ca. 950\n"
    table = await dropped(services, readings)
    assert table["columns"][1]["without_value"] == ["< 0,5", "ca. 950"]
    sql = f"SELECT well, AVG(value) AS mean FROM {table['name']} GROUP BY well ORDER BY well"
    result = await used(services, "run_sql", ANNA, sql=sql, table_ids=[table["table_id"]])
    assert result["rows"] == [["W1", pytest.approx(1224.1667)], ["W2", 987.25]]
    assert result["assumptions"] == [
        f"2 cells of “Value” in “{table['title']}” have no value and are not counted: < 0,5; ca. 950."
    ]
    sql = f"SELECT COUNT(*) FROM {table['name']} WHERE well = 'W1'"
    counted = await used(services, "run_sql", ANNA, sql=sql, table_ids=[table["table_id"]])
    assert counted["assumptions"] == []


async def test_the_file_with_the_first_row_is_cited_first(services: Services) -> None:
    sales = await dropped(services)
    plan = await dropped(services, "Region,Target\nNorth,7\nWest,900\n")
    sql = (
        f"SELECT region, revenue AS n FROM {sales['name']} UNION ALL "
        f"SELECT region, target FROM {plan['name']} ORDER BY n DESC LIMIT 1"
    )
    result = await used(services, "run_sql", ANNA, sql=sql, table_ids=[sales["table_id"], plan["table_id"]])
    assert result["rows"] == [["West", 900]]
    assert [table["table_id"] for table in result["tables"]] == [plan["table_id"], sales["table_id"]]


async def test_readers_see_the_headings_of_the_sheet(services: Services) -> None:
    table = await dropped(services, "Part no.;Stock Lyon\nBR-1;5\n")
    sql = f"SELECT part_no, MAX(stock_lyon) AS largest_stock, COUNT(*) FROM {table['name']} GROUP BY 1"
    tool = bound_tool("run_sql", services, ANNA)
    assert isinstance(tool, table_tools.RunSql)
    result = await tool.execute(sql=sql, table_ids=[table["table_id"]])
    assert result["columns"] == ["part_no", "largest_stock", "COUNT(*)"]
    (evidence,) = tool.evidence.results
    assert evidence.labels == ("Part no.", "Largest stock", "COUNT(*)")
