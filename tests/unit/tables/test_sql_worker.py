"""Tests for queries over tables: their results, their metadata, and refusals that suggest a correction."""

import sqlite3
from pathlib import Path

import pytest

from shared.ingestion.parser_process import ParserPool
from shared.tables.queries import (
    MAX_ROWS,
    QueryFile,
    QueryJob,
    QueryRefusal,
    QueryReply,
    QueryResult,
    QueryTable,
)
from shared.tables.sql_worker import answer

PATIENCE_S = 60


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[QueryFile, ...]:
    folder = tmp_path_factory.mktemp("tables")
    with sqlite3.connect(folder / "sales.sqlite") as connection:
        connection.execute("CREATE TABLE t1 (_row INTEGER, region TEXT, revenue REAL, revenue__raw TEXT)")
        rows = [
            (2, "North", 120.5, "120,50"),
            (3, "South", 80, "80"),
            (4, "North", 9.5, "9,5"),
            (5, "East", None, ""),
        ]
        connection.executemany("INSERT INTO t1 VALUES (?, ?, ?, ?)", rows)
    with sqlite3.connect(folder / "plan.sqlite") as connection:
        connection.execute("CREATE TABLE t1 (_row INTEGER, region TEXT, target INTEGER)")
        connection.executemany("INSERT INTO t1 VALUES (?, ?, ?)", [(2, "North", 100), (3, "South", 100)])
        connection.execute("CREATE TABLE t2 (_row INTEGER, n INTEGER)")
        connection.executemany("INSERT INTO t2 VALUES (?, ?)", [(n, n) for n in range(MAX_ROWS + 5)])
    sales = QueryTable(
        name="sales",
        stored_name="t1",
        title="Sales 2024",
        columns=("region", "revenue"),
        hidden=("_row", "revenue__raw"),
    )
    plan = QueryTable(
        name="plan", stored_name="t1", title="Plan", columns=("region", "target"), hidden=("_row",)
    )
    many = QueryTable(name="many", stored_name="t2", title="Many", columns=("n",), hidden=("_row",))
    return (
        QueryFile(path=folder / "sales.sqlite", tables=(sales,)),
        QueryFile(path=folder / "plan.sqlite", tables=(plan, many)),
    )


def run_query(sql: str, files: tuple[QueryFile, ...]) -> QueryResult:
    reply = answer(QueryJob(target=Path("unused"), sql=sql, files=files))
    assert reply.result is not None, reply.refusal
    return reply.result


def refused(sql: str, files: tuple[QueryFile, ...]) -> QueryRefusal:
    reply = answer(QueryJob(target=Path("unused"), sql=sql, files=files))
    assert reply.refusal is not None
    return reply.refusal


def test_a_difference_does_not_end_in_noise(files: tuple[QueryFile, ...]) -> None:
    assert run_query("select sum(revenue) - 187.9 as more from sales", files).rows == ((22.1,),)


def test_a_sum_comes_with_its_words_and_its_lines(files: tuple[QueryFile, ...]) -> None:
    result = run_query("select Sum(revenue) as total from Sales where region = 'North'", files)
    assert (result.columns, result.rows, result.row_count) == (("total",), ((130.0,),), 1)
    assert result.sql_in_words == "The sum of revenue from “Sales 2024” where region is 'North'."
    assert result.source_rows == (2, 4)
    assert "North" in result.constants


def test_the_best_come_with_their_own_lines(files: tuple[QueryFile, ...]) -> None:
    result = run_query("SELECT region, revenue FROM sales ORDER BY revenue DESC LIMIT 2", files)
    assert result.rows == (("North", 120.5), ("South", 80.0))
    assert result.source_rows == (2, 3)
    assert result.sql_in_words.endswith("sorted by revenue, highest first (the first 2).")


def test_two_files_are_joined(files: tuple[QueryFile, ...]) -> None:
    sql = (
        "SELECT s.region, SUM(s.revenue) - p.target AS ahead FROM sales s JOIN plan p ON p.region = s.region "
        "GROUP BY s.region, p.target ORDER BY s.region"
    )
    result = run_query(sql, files)
    assert result.rows == (("North", 30.0), ("South", -20.0))
    assert result.source_rows == ()


def test_columns_of_several_tables_name_theirs(files: tuple[QueryFile, ...]) -> None:
    result = run_query(
        "SELECT ROUND(s.revenue / NULLIF(p.target, 0), 1) FROM sales s JOIN plan p ON p.region = s.region "
        "WHERE NOT s.region IS NULL",
        files,
    )
    assert result.sql_in_words == (
        "Revenue of Sales 2024 ÷ target of Plan (unless it is 0) (rounded) from “Sales 2024” joined to "
        "“Plan” with region of Plan is region of Sales 2024 where region of Sales 2024 is not empty."
    )


def test_parts_of_dates_and_choices_have_words(files: tuple[QueryFile, ...]) -> None:
    sql = (
        "SELECT SUM(CASE WHEN LOWER(s.region) = 'north' THEN s.revenue END) FROM sales s "
        "WHERE strftime('%Y', region) <> '2024'"
    )
    assert run_query(sql, files).sql_in_words == (
        "The sum of revenue where region in lower case is 'north' from “Sales 2024” "
        "where the year of region is not '2024'."
    )


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (
            "revenue * 100.0 / (SELECT SUM(revenue) FROM sales)",
            "Revenue × 100.0 ÷ (the sum of revenue from “Sales 2024”)",
        ),
        ("SUM(revenue) OVER () AS total", "The sum of revenue in all"),
        ("COUNT(*) OVER (PARTITION BY region)", "The number of rows for each region"),
        ("SUM(CASE WHEN revenue > 90 THEN 1 ELSE 0 END)", "The number of rows where revenue is more than 90"),
        (
            "SUM(CASE WHEN revenue > 90 THEN revenue ELSE 0 END)",
            "The sum of (revenue where revenue is more than 90, else 0)",
        ),
        ("RANK() OVER (ORDER BY revenue DESC)", "RANK() OVER (ORDER BY revenue DESC)"),
    ],
)
def test_totals_beside_their_parts_have_words(
    files: tuple[QueryFile, ...], expression: str, words: str
) -> None:
    assert run_query(f"SELECT {expression} FROM sales", files).sql_in_words == f"{words} from “Sales 2024”."


def test_a_query_is_said_in_german_too(files: tuple[QueryFile, ...]) -> None:
    sql = (
        "SELECT s.region, SUM(s.revenue), COUNT(*) FROM sales s LEFT JOIN plan p ON p.region = s.region "
        "WHERE s.revenue BETWEEN 1 AND 99 GROUP BY s.region ORDER BY 2 DESC LIMIT 3"
    )
    assert run_query(sql, files).sql_in_german == (
        "Region von Sales 2024, die Summe von revenue von Sales 2024, die Anzahl der Zeilen aus „Sales 2024“ "
        "verknüpft, auch wo nichts passt, mit „Plan“ über region von Plan ist region von Sales 2024 "
        "mit der Bedingung: revenue von Sales 2024 ist von 1 bis 99 je region von Sales 2024 "
        "sortiert nach 2, größte zuerst (die ersten 3)."
    )


def test_a_star_shows_no_hidden_column_but_they_can_be_named(files: tuple[QueryFile, ...]) -> None:
    assert run_query("SELECT * FROM sales", files).columns == ("region", "revenue")
    assert run_query("SELECT _row, revenue__raw FROM sales LIMIT 1", files).rows == ((2, "120,50"),)


@pytest.mark.parametrize("sql", ["SELECT n FROM many", "SELECT n FROM many LIMIT 100000"])
def test_a_long_result_is_cut_and_says_so(sql: str, files: tuple[QueryFile, ...]) -> None:
    result = run_query(sql, files)
    assert (len(result.rows), result.row_count, result.truncated) == (MAX_ROWS, MAX_ROWS, True)


def test_an_empty_result_has_its_columns(files: tuple[QueryFile, ...]) -> None:
    result = run_query("SELECT region FROM sales WHERE region = 'West'", files)
    assert (result.columns, result.rows, result.row_count) == (("region",), (), 0)


def test_a_column_without_a_name_is_called_by_what_it_is(files: tuple[QueryFile, ...]) -> None:
    assert run_query("SELECT COUNT(*), region FROM sales GROUP BY region", files).columns == (
        "COUNT(*)",
        "region",
    )


@pytest.mark.parametrize(
    ("sql", "helps"),
    [
        ("SELECT x FROM sales", "region, revenue"),
        ("SELECT * FROM other", "many, plan, sales"),
        ("SELECT printf('%d', 1) FROM sales", "Allowed functions"),
        ("SELEC 1", "SELECT"),
        ("SELECT region FROM sales, plan", "Columns"),
    ],
)
def test_a_refusal_says_what_is_allowed(sql: str, helps: str, files: tuple[QueryFile, ...]) -> None:
    refusal = refused(sql, files)
    assert refusal.code == "InvalidQueryError"
    assert helps in refusal.hint


def test_a_query_without_end_is_ended(files: tuple[QueryFile, ...]) -> None:
    assert refused("SELECT count(*) FROM many a, many b, many c, many d", files).code == "TimeoutError"


async def test_a_query_runs_in_the_worker_process(files: tuple[QueryFile, ...], tmp_path: Path) -> None:
    pool = ParserPool(workers=1, memory_mb=320)
    try:
        target = tmp_path / "reply.json"
        await pool.run(QueryJob(target=target, sql="SELECT max(n) FROM many", files=files), PATIENCE_S)
    finally:
        pool.close()
    reply = QueryReply.model_validate_json(target.read_bytes())
    assert reply.result is not None
    assert reply.result.rows == ((MAX_ROWS + 4,),)


@pytest.mark.parametrize(
    ("expression", "date"),
    [
        ("date('2026-05-31', '-3 months')", "2026-02-28"),
        ("date('2026-05-31', '-' || (target - 97) || ' months')", "2026-02-28"),
        ("date('2024-02-29', '+1 year')", "2025-02-28"),
        ("date('2026-01-31', '+1 month', 'start of month', '+1 day')", "2026-02-02"),
        ("date('2026-05-31', '-0000-03-00')", "2026-02-28"),
        ("date('2026-05-31', '-3 months', 'ceiling')", "2026-03-03"),
        ("date('2026-05-31', '-3 months', 'floor')", "2026-02-28"),
        ("date('2026-05-15', '-3 months', '-1 day')", "2026-02-14"),
        ("strftime('%m-%d', '2026-12-31', '-3 months')", "09-30"),
    ],
)
def test_months_end_with_their_last_day(files: tuple[QueryFile, ...], expression: str, date: str) -> None:
    result = run_query(f"SELECT {expression} FROM plan LIMIT 1", files)
    assert result.rows == ((date,),)
    assert run_query(result.sql, files).sql == result.sql  # so that its proof can run it again


@pytest.mark.parametrize(
    ("sql", "main"),
    [
        ("SELECT n AS x FROM many UNION ALL SELECT revenue FROM sales ORDER BY x DESC LIMIT 1", "many"),
        ("SELECT x FROM (SELECT revenue AS x FROM sales UNION SELECT n FROM many) WHERE x = 120.5", "sales"),
        ("SELECT s.region, s.revenue FROM plan p JOIN sales s ON s.region = p.region", "sales"),
        ("SELECT s.region FROM plan p JOIN sales s ON s.region = p.region", ""),
        ("SELECT SUM(revenue) + (SELECT SUM(target) FROM plan) FROM sales", ""),
        ("SELECT region FROM sales", ""),
        ("SELECT region FROM sales UNION SELECT region FROM plan WHERE 1 = 0 ORDER BY 1 LIMIT 0", ""),
    ],
)
def test_the_main_table_contains_the_first_row(files: tuple[QueryFile, ...], sql: str, main: str) -> None:
    assert run_query(sql, files).main_table == main


def test_quotes_in_a_cell_do_not_change_the_search_for_its_table(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "names.sqlite") as connection:
        for name in ("t1", "t2"):
            connection.execute(f"CREATE TABLE {name} (_row INTEGER, name TEXT)")
        connection.execute("INSERT INTO t2 VALUES (2, ?)", ("it's '') OR 1 IN (1",))
    one, two = (
        QueryTable(name=name, stored_name=stored, title=name, columns=("name",))
        for name, stored in (("one", "t1"), ("two", "t2"))
    )
    file = QueryFile(path=tmp_path / "names.sqlite", tables=(one, two))
    assert run_query("SELECT name FROM one UNION ALL SELECT name FROM two", (file,)).main_table == "two"
