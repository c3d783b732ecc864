"""Tests with SQL that attempts forbidden reads, writes or denial of service: the guard and engine refuse it.

The file holds a second sheet, and another file lies beside it: neither is permitted to the query.
"""

import sqlite3
from itertools import product
from pathlib import Path

import pytest

from shared.tables.queries import QueryFile, QueryJob, QueryTable
from shared.tables.sql_worker import answer

SECRET = "secret-4711"

_FOREIGN = (
    "t2",
    "secret",
    "f0.t2",
    "f0.t1",
    "main.t2",
    "temp.t2",
    "sqlite_master",
    "sqlite_schema",
    "f0.sqlite_master",
    "main.sqlite_schema",
    "sqlite_temp_master",
    "sqlite_sequence",
    "dbstat",
    "pragma_table_info('t2')",
    "pragma_database_list",
    "pragma_database_list()",
    "json_each('[1]')",
    "json_tree('{}')",
    "generate_series(1, 9)",
    "a.b.c.d",
    "(VALUES (1))",
    '"t2"',
    "[t2]",
)
_PLACES = (
    "SELECT * FROM {}",
    "SELECT region FROM sales WHERE EXISTS (SELECT 1 FROM {})",
    "WITH x AS (SELECT * FROM {}) SELECT * FROM x",
    "SELECT region FROM sales UNION SELECT * FROM {}",
    "SELECT (SELECT max(name) FROM {}) FROM sales",
    "SELECT * FROM sales NATURAL JOIN {}",
    "SELECT * FROM sales JOIN {} USING (region)",
)
_STATEMENTS = (
    "ATTACH 'other.sqlite' AS x",
    "DETACH f0",
    "VACUUM INTO 'copy.sqlite'",
    "VACUUM",
    "PRAGMA table_info(t2)",
    "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = 1",
    "EXPLAIN SELECT * FROM sales",
    "ANALYZE",
    "REINDEX",
    "EXPLAIN QUERY PLAN SELECT * FROM sales",
    "INSERT INTO sales VALUES ('x', 1)",
    "UPDATE sales SET revenue = 0",
    "DELETE FROM sales",
    "DROP TABLE sales",
    "CREATE TABLE x (a)",
    "CREATE TABLE x AS SELECT * FROM sales",
    "CREATE VIEW v AS SELECT * FROM t2",
    "CREATE TRIGGER t AFTER INSERT ON sales BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE x USING fts5(a)",
    "ALTER TABLE sales RENAME TO x",
    "REPLACE INTO sales VALUES ('x', 1)",
    "BEGIN",
    "COMMIT",
    "SAVEPOINT s",
    "SELECT 1; SELECT 2",
    "SELECT * FROM sales; DROP TABLE sales",
    ";",
    "",
    "-- nothing",
    "VALUES (1)",
    "WITH x AS (DELETE FROM sales RETURNING *) SELECT * FROM x",
    "SELECT * INTO x FROM sales",
    "SELECT * FROM sales FOR UPDATE",
    "SELECT * FROM sales WHERE region = ?",
    "SELECT * FROM sales WHERE region = :name",
    "SELECT @x FROM sales",
    "SELECT * FROM sales INDEXED BY i",
    "SELECT * FROM sales TABLESAMPLE (10)",
    "EXEC sp_help",
    "CALL f()",
    "SHOW TABLES",
    "SET x = 1",
    "USE f0",
    "COPY sales TO 'x'",
    "SELECT * FROM sales LIMIT (SELECT count(*) FROM t2)",
    "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT count(*) FROM x",
    "WITH x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT count(*) FROM x",
    "WITH t2 AS (SELECT * FROM t2) SELECT * FROM t2",
    "SELECT name FROM sales",
    "SELECT t2.name FROM sales",
    "SELECT f0.t2.name FROM sales",
    "SELECT rowid FROM sales",
    "SELECT * FROM sales ORDER BY (SELECT name FROM t2)",
    "SELECT * FROM sales GROUP BY (SELECT name FROM t2)",
    "SELECT * FROM sales, LATERAL (SELECT * FROM t2) x",
    "SELECT CASE WHEN (SELECT count(*) FROM t2) > 0 THEN 1 END FROM sales",
    "SELECT * FROM sales WHERE region IN (SELECT name FROM t2)",
    "SELECT * FROM sales WHERE region IN t2",
    "SELECT sum(revenue) OVER (ORDER BY (SELECT name FROM t2)) FROM sales",
)
_CALLS = (
    "load_extension('x')",
    "readfile('/etc/passwd')",
    "writefile('x', 'y')",
    "edit('x')",
    "fts3_tokenizer('x')",
    "printf('%.*c', 100000000, 'x')",
    "format('%1000000d', 1)",
    "zeroblob(100000000)",
    "randomblob(100000000)",
    "replace(region, 'N', hex(zeroblob(1000000)))",
    "hex(region)",
    "quote(region)",
    "group_concat(region)",
    "string_agg(region, ',')",
    "json_group_array(region)",
    "json_object('a', 1)",
    "json_extract('{}', '$')",
    "char(1, 2)",
    "sqlite_version()",
    "sqlite_source_id()",
    "sqlite_compileoption_get(1)",
    "random()",
    "changes()",
    "last_insert_rowid()",
    "likelihood(1, 0.5)",
    "soundex('a')",
    "unicode('a')",
    "load('x')",
    "eval('SELECT 1')",
    "pg_read_file('/etc/passwd')",
    "dblink('x', 'y')",
    "query_to_xml('SELECT 1', true, true, '')",
    "set_config('a', 'b', true)",
    "pg_sleep(10)",
    "current_setting('a')",
    "xp_cmdshell('x')",
    "user()",
)
_BOMBS = (
    "SELECT count(*) FROM sales a, sales b, sales c, sales d, sales e, sales f, sales g",
    "SELECT sum(a.revenue * b.revenue) FROM sales a, sales b, sales c, sales d, sales e, sales f",
    f"SELECT {'(' * 1200}1{')' * 1200} FROM sales",
    f"SELECT {'1 + ' * 900}1 FROM sales",
    f"SELECT {'a' * 5000} FROM sales",
    " UNION ALL ".join(["SELECT region FROM sales"] * 100),
    f"SELECT {'NOT ' * 700}1 FROM sales",
    "WITH c0 AS (SELECT * FROM sales), "
    + ", ".join(f"c{n + 1} AS (SELECT x.*, y.* FROM c{n} x, c{n} y)" for n in range(30))
    + " SELECT * FROM c30",
    f"SELECT revenue AS a0, {', '.join(f'a{n} + a{n} AS a{n + 1}' for n in range(60))} FROM sales",
)
ATTACKS = (
    *(place.format(foreign) for place, foreign in product(_PLACES, _FOREIGN)),
    *_STATEMENTS,
    *(f"SELECT {call} FROM sales" for call in _CALLS),
    *_BOMBS,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[QueryFile, ...]:
    folder = tmp_path_factory.mktemp("tables")
    with sqlite3.connect(folder / "sales.sqlite") as connection:
        connection.execute("CREATE TABLE t1 (_row INTEGER, region TEXT, revenue REAL)")
        connection.executemany("INSERT INTO t1 VALUES (?, ?, ?)", [(n, f"r{n}", n) for n in range(100)])
        connection.execute("CREATE TABLE t2 (region TEXT, name TEXT)")
        connection.execute("INSERT INTO t2 VALUES ('r1', ?)", (SECRET,))
    table = QueryTable(
        name="sales", stored_name="t1", title="Sales", columns=("region", "revenue"), hidden=("_row",)
    )
    return (QueryFile(path=folder / "sales.sqlite", tables=(table,)),)


@pytest.mark.attack("sql")
@pytest.mark.parametrize("sql", ATTACKS)
def test_nothing_foreign_is_read_and_nothing_runs_away(sql: str, files: tuple[QueryFile, ...]) -> None:
    reply = answer(QueryJob(target=Path("unused"), sql=sql, files=files))
    assert reply.refusal is not None
    assert reply.result is None
    assert SECRET not in reply.model_dump_json()


def test_there_are_enough_attacks() -> None:
    assert len(set(ATTACKS)) >= 150


def test_the_world_holds_what_is_attacked(files: tuple[QueryFile, ...]) -> None:
    reply = answer(QueryJob(target=Path("unused"), sql="SELECT count(*) FROM sales", files=files))
    assert reply.result is not None
    assert reply.result.rows == ((100,),)
