"""Tests for the SQL guard of files: the rewritten query, its limits and the text of refusals."""

import pytest

from shared.platform.errors import InvalidQueryError
from shared.tables.queries import MAX_ROWS, MAX_SQL_CHARS, QueryTable
from shared.tables.sql_guard import GuardedQuery, guard_query

SALES = QueryTable(
    name="Sales", stored_name="t1", title="Sales", columns=("region", "revenue"), hidden=("_row",)
)
PLAN = QueryTable(name="plan", stored_name="t2", title="Plan", columns=("region", "target"))
TABLES = {"Sales": ("f0", SALES), "plan": ("f1", PLAN)}


def allow(sql: str) -> GuardedQuery:
    return guard_query(sql, TABLES)


def refusal(sql: str, tables: dict[str, tuple[str, QueryTable]] = TABLES) -> str:
    with pytest.raises(InvalidQueryError) as refused:
        guard_query(sql, tables)
    return f"{refused.value} {' '.join(refused.value.hints)}"


def test_a_table_is_read_from_its_file_under_the_name_that_the_query_gives_it() -> None:
    query = allow("SELECT region FROM sales")
    assert query.sql == f"SELECT region FROM sales LIMIT {MAX_ROWS + 1}"
    assert query.executed == (
        f'SELECT "sales"."region" AS "region" FROM "f0"."t1" AS "sales" LIMIT {MAX_ROWS + 1}'
    )
    assert '"f0"."t1" AS "s"' in allow("SELECT s.region FROM sales AS s").executed


def test_a_name_of_with_is_no_file_though_one_has_that_name() -> None:
    executed = allow("WITH plan AS (SELECT region FROM sales) SELECT region FROM plan").executed
    assert '"f0"."t1"' in executed
    assert '"f1"' not in executed
    joined = allow(
        "WITH x AS (SELECT region FROM sales) "
        "SELECT x.region, target FROM x JOIN plan ON plan.region = x.region"
    )
    assert '"f1"."t2" AS "plan"' in joined.executed


def test_comments_are_dropped() -> None:
    assert "hidden" not in allow("SELECT region /* hidden */ FROM sales -- hidden").executed


@pytest.mark.parametrize(
    ("limit_clause", "limit"),
    [
        ("", MAX_ROWS + 1),
        (" LIMIT 1", 1),
        (f" LIMIT {MAX_ROWS}", MAX_ROWS),
        (f" LIMIT {MAX_ROWS + 1}", MAX_ROWS + 1),
        (f" LIMIT {MAX_ROWS + 2}", MAX_ROWS + 1),
    ],
)
def test_one_row_more_than_is_fetched_shows_that_there_are_more(limit_clause: str, limit: int) -> None:
    assert allow(f"SELECT region FROM sales{limit_clause}").sql == f"SELECT region FROM sales LIMIT {limit}"


@pytest.mark.parametrize("limit", ["1 + 1", "-1", "2.5"])
def test_a_limit_is_a_whole_number(limit: str) -> None:
    assert "LIMIT must be a number" in refusal(f"SELECT region FROM sales LIMIT {limit}")


def test_columns_have_their_names_or_what_calculates_them() -> None:
    assert allow("SELECT region, revenue * 2, sum(revenue) AS total FROM sales GROUP BY 1, 2").columns == (
        "region",
        "revenue * 2",
        "total",
    )
    assert allow("SELECT * FROM sales").columns == ("region", "revenue")


def test_hidden_columns_are_read_only_by_name() -> None:
    assert '"_row"' not in allow("SELECT * FROM sales").executed
    assert '"sales"."_row"' in allow("SELECT region FROM sales WHERE _row > 3").executed


@pytest.mark.parametrize(
    ("sql", "source"),
    [
        (
            "SELECT region FROM sales WHERE revenue > 1 ORDER BY revenue LIMIT 2 OFFSET 1",
            'SELECT "sales"."_row" FROM "f0"."t1" AS "sales" WHERE "sales"."revenue" > 1 '
            'ORDER BY "sales"."revenue" LIMIT 2 OFFSET 1',
        ),
        (
            "SELECT sum(revenue) AS total FROM sales WHERE region = 'a' LIMIT 1",
            'SELECT "sales"."_row" FROM "f0"."t1" AS "sales" WHERE "sales"."region" = \'a\'',
        ),
        (
            "SELECT region FROM sales GROUP BY region LIMIT 1",
            'SELECT "sales"."_row" FROM "f0"."t1" AS "sales"',
        ),
        ("SELECT s.region FROM sales s JOIN sales r ON r.region = s.region", ""),
        ("SELECT region FROM sales UNION SELECT region FROM sales", ""),
        ("SELECT region FROM (SELECT region FROM sales) x", ""),
        ("WITH x AS (SELECT 1 AS n) SELECT region FROM sales", ""),
    ],
)
def test_the_lines_behind_a_result_are_those_that_the_query_took_into_account(sql: str, source: str) -> None:
    assert guard_query(sql, {"sales": ("f0", SALES)}).source == source


def test_a_table_without_numbered_lines_has_none_to_show() -> None:
    assert guard_query("SELECT region FROM plan", {"plan": ("f1", PLAN)}).source == ""


def test_a_query_may_have_as_many_characters_as_the_limit() -> None:
    sql = "SELECT region FROM sales"
    assert allow(sql + " " * (MAX_SQL_CHARS - len(sql)))
    assert "characters" in refusal(sql + " " * (MAX_SQL_CHARS - len(sql) + 1))


def test_a_query_may_have_1500_parts() -> None:
    # Four more nodes than numbers: SELECT, FROM, the table and its name.
    assert allow(f"SELECT {','.join('1' * 1496)} FROM sales")
    assert "too many parts" in refusal(f"SELECT {','.join('1' * 1497)} FROM sales")


def test_five_stars_are_allowed_and_those_of_counts_are_free() -> None:
    stars = ", ".join(["*"] * 5)
    assert allow(f"SELECT {stars}, count(*) FROM sales")
    assert "* more than 5 times" in refusal(f"SELECT {stars}, * FROM sales")


def test_subqueries_upon_subqueries_stay_small() -> None:
    def doubled(times: int) -> str:
        return f"{'SELECT a + a AS a FROM (' * times}SELECT revenue AS a FROM sales{') x' * times}"

    assert allow(doubled(9))
    assert "too large" in refusal(doubled(10))


def test_of_a_subquery_each_column_counts_for_those_that_are_calculated_from_it() -> None:
    columns = "region AS a, revenue AS b, 1 AS c, 2 AS d, 3 AS e, 4 AS f, 5 AS g, 6 AS h"
    assert allow(f"{'SELECT a, b, c, d, e, f, g, h FROM (' * 14}SELECT {columns} FROM sales{') x' * 14}")


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT 1; SELECT 2", "There are 2 statements."),
        ("", "There are 0 statements."),
        ("DELETE FROM sales", "Only SELECT is allowed."),
        ("SELECT FROM WHERE", "cannot be parsed"),
        ("SELECT * FROM a.sales", "by their plain names"),
        ("SELECT * FROM sales TABLESAMPLE (10)", "not allowed"),
        ("SELECT * FROM other", "There is no table 'other'. Tables: plan, sales."),
        ("SELECT nothing FROM sales", "Columns: sales: region, revenue; plan: region, target."),
        ("SELECT * FROM sales NATURAL JOIN plan", "NATURAL JOIN is not allowed."),
        ("SELECT * FROM sales s JOIN plan p USING (region)", ""),
        ("SELECT hex(region) FROM sales", "The function HEX is not allowed. Allowed functions: abs, "),
        ("SELECT madeup(region) FROM sales", "The function madeup is not allowed."),
        ("SELECT region FROM sales ORDER BY region COLLATE nocase, @x", "PARAMETER is not allowed."),
        ("SELECT revenue AS a, a + 1 AS b FROM sales", "Column 'a' cannot be resolved."),
        ("SELECT * FROM total()", "by their plain names"),
        ("WITH X AS (SELECT region FROM sales) SELECT region FROM x", "There is no table 'x'."),
    ],
)
def test_a_refusal_says_what_is_wrong_and_what_is_allowed(sql: str, reason: str) -> None:
    if reason:
        assert reason in refusal(sql)
    else:
        assert allow(sql)


def test_without_tables_a_refusal_says_so() -> None:
    assert refusal("SELECT * FROM sales", {}).endswith("Tables: none.")


def test_long_names_are_cut_in_refusals() -> None:
    assert f"{'t' * 60!r}." in refusal(f"SELECT * FROM {'t' * 70}")
    assert f"{'t' * 60!r}." in refusal(f"WITH {'T' * 70} AS (SELECT 1 AS n) SELECT n FROM {'t' * 70}")
    assert f"function {'f' * 40} is" in refusal(f"SELECT {'f' * 70}(region) FROM sales")
    assert f"Column {'c' * 60!r} cannot" in refusal(
        f"SELECT revenue AS {'c' * 70}, {'c' * 70} + 1 AS b FROM sales"
    )


def test_long_lists_of_columns_and_long_errors_are_cut_in_refusals() -> None:
    wide = QueryTable(name="wide", stored_name="t", title="Wide", columns=tuple("abcdefghi" * 100))
    column_list = ", ".join(wide.columns)[:600]
    assert refusal("SELECT nothing FROM wide", {"wide": ("f0", wide)}).endswith(
        f"Columns: wide: {column_list}."
    )
    message = refusal(f"SELECT region FROM sales WHERE {'c' * 250} = 1")
    assert len(message.partition("ambiguous: ")[2].partition(" Columns: ")[0]) == 200


CONTRACTS = QueryTable(
    name="contracts",
    stored_name="t1",
    title="Contracts",
    columns=("name", "wert", "end", "months", "value"),
    kinds=("text", "text", "date", "integer", "money"),
    hidden=("_row", "value__raw"),
)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(wert) FROM contracts",
        "SELECT SUM(value__raw) FROM contracts",
        "SELECT total(c.wert) FROM contracts c",
        "SELECT MAX(wert) - MIN(wert) FROM contracts",
        "SELECT SUM(CASE WHEN months > 1 THEN wert ELSE 0 END) FROM contracts",
        "SELECT SUM(COALESCE(wert, 0)) FROM contracts",
        "SELECT SUM(CAST(wert AS REAL)) FROM contracts",
        "SELECT name FROM contracts WHERE wert < 5",
        "SELECT name FROM contracts WHERE 5 > (wert)",
        "SELECT name FROM contracts WHERE wert BETWEEN '1' AND '5'",
        "WITH c AS (SELECT wert AS w FROM contracts) SELECT AVG(w) FROM c",
        "SELECT AVG(w) FROM (SELECT value AS w FROM contracts UNION ALL SELECT wert FROM contracts)",
        'SELECT "end" - months FROM contracts',
        'SELECT name FROM contracts WHERE "end" < 2026',
        "SELECT name FROM contracts WHERE \"end\" = '31.12.2026'",
        "SELECT name FROM contracts WHERE value = 'on request'",
        "SELECT name FROM contracts WHERE months IN ('3', 'many')",
        "SELECT sum(DISTINCT wert) FROM contracts",
        'SELECT avg(DISTINCT "end") FROM contracts',
        "SELECT sum(wert COLLATE NOCASE) FROM contracts",
        "SELECT sum(trim(wert)) FROM contracts",
        "SELECT sum((SELECT max(wert) FROM contracts)) FROM contracts",
        "SELECT max(wert) OVER () + 1 FROM contracts",
        "SELECT name FROM contracts WHERE wert COLLATE NOCASE > 5",
        "SELECT name FROM contracts WHERE (wert, 1) > (5, 1)",
        "SELECT name FROM contracts WHERE wert > value",
        "SELECT name FROM contracts WHERE wert > 2 + 3",
        "SELECT name FROM contracts WHERE 100 BETWEEN wert AND value",
        "SELECT name FROM contracts WHERE wert > (SELECT avg(value) FROM contracts)",
        "SELECT name FROM contracts WHERE wert > CAST(5 AS INTEGER)",
        'SELECT name FROM contracts WHERE "end" > months',
    ],
)
def test_text_and_dates_are_no_numbers(sql: str) -> None:
    assert "The column" in refusal(sql, {"contracts": ("f0", CONTRACTS)})


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT SUM(value), MIN(wert), MAX("end"), COUNT(name) FROM contracts WHERE wert = 5',
        "SELECT name FROM contracts WHERE \"end\" >= '2026-01-01' AND wert < 'M' AND months = '3'",
        'SELECT julianday("end") - 3, CAST(strftime(\'%Y\', "end") AS INTEGER) + 1 FROM contracts',
        "SELECT value FROM contracts WHERE value <> '' AND value__raw = 'on request'",
        "SELECT CAST(substr(wert, 1, 2) AS INTEGER) * months FROM contracts",
        "SELECT SUM(name = 'A'), AVG(LENGTH(name)) FROM contracts",
        "SELECT _row + 1 FROM contracts",
        "SELECT name FROM contracts WHERE coalesce(value, 'n/a') = 'n/a' OR wert = months",
        "SELECT name FROM contracts GROUP BY name HAVING coalesce(max(\"end\"), 'none') = 'none'",
        "SELECT name FROM contracts WHERE strftime('%Y', \"end\") = months OR substr(\"end\", 1, 4) > '2025'",
        'SELECT substr("end", 1, 4) - 2000 FROM contracts',
        "SELECT name FROM contracts WHERE strftime('%Y', \"end\") > CAST('2025' AS INTEGER)",
        "SELECT count(DISTINCT wert), sum(DISTINCT value) FROM contracts WHERE (name, wert) = ('A', 5)",
        "SELECT y FROM (SELECT strftime('%Y', \"end\") AS y FROM contracts) WHERE y = '2026'",
        "SELECT name FROM contracts WHERE \"end\" < date('now', '-30 days') AND wert > lower(name)",
        "SELECT name FROM contracts WHERE value > (SELECT avg(value) FROM contracts) AND months < value / 2",
        "SELECT name FROM contracts WHERE coalesce(\"end\", '') >= '2026'",
    ],
)
def test_calculations_with_numbers_are_allowed(sql: str) -> None:
    guard_query(sql, {"contracts": ("f0", CONTRACTS)})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name FROM contracts WHERE strftime('%Y', \"end\") = 2026",
        'SELECT name FROM contracts WHERE substr("end", 1, 4) > 2020 + 5',
        "SELECT y FROM (SELECT strftime('%Y', \"end\") AS y FROM contracts) WHERE y IN (2025, 2026)",
        'SELECT name FROM contracts WHERE date("end") BETWEEN 2025 AND 2026',
    ],
)
def test_calculated_text_is_not_compared_with_numbers(sql: str) -> None:
    assert "returns text" in refusal(sql, {"contracts": ("f0", CONTRACTS)})


@pytest.mark.parametrize(
    ("arguments", "completed"),
    [
        ("region, '-3 months'", "region, '-3 months', 'floor'"),
        ("region, '-3 months', 'floor'", "region, '-3 months', 'floor'"),
        ("region, '-3 months', 'ceiling', '+1 year'", "region, '-3 months', 'ceiling', '+1 year', 'floor'"),
        ("region, '-3 months', '-1 day'", "region, '-3 months', 'floor', '-1 day'"),
        ("region, '-1 day', '+1 year'", "region, '-1 day', '+1 year', 'floor'"),
        ("region, revenue || ' months'", "region, revenue || ' months', 'floor'"),
        ("region, '-1 day'", "region, '-1 day'"),
    ],
)
def test_added_months_end_with_the_month(arguments: str, completed: str) -> None:
    assert f"DATE({completed})" in allow(f"SELECT date({arguments}) FROM sales").sql
