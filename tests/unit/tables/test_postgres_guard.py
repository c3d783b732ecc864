"""Tests for the SQL guard of PostgreSQL: the statements sent to a database, and refused statements."""

from itertools import product

import pytest

from shared.platform.errors import InvalidQueryError
from shared.tables.queries import QueryTable
from shared.tables.sql_guard import guard_query

ORDERS = QueryTable(
    name="orders_1", stored_name="orders", title="Orders", columns=("region", "ordered", "amount", "paid")
)
PLACES = {"orders_1": ("reporting", ORDERS)}

_FOREIGN = (
    "secret",
    "public.secret",
    "reporting.orders",
    "shop.reporting.orders",
    "pg_class",
    "pg_catalog.pg_shadow",
    "pg_authid",
    "information_schema.tables",
    "pg_stat_activity",
    "pg_ls_dir('/')",
    "pg_read_file('/etc/passwd')",
    "generate_series(1, 1000000000)",
    "dblink('host=x', 'SELECT 1') AS t(a text)",
    "unnest(ARRAY[1])",
    "json_each('{}')",
    "query_to_xml('SELECT * FROM secret', true, true, '')",
    "ROWS FROM (pg_ls_dir('/'))",
    "ONLY pg_class",
    "(TABLE secret) AS s",
    "(VALUES (1)) AS v",
    "LATERAL (SELECT * FROM secret) AS s",
    "XMLTABLE('/a' PASSING '<a/>' COLUMNS a text)",
    '"secret"',
)
_FROM = (
    "SELECT * FROM {}",
    "SELECT region FROM orders_1 WHERE EXISTS (SELECT 1 FROM {})",
    "WITH x AS (SELECT * FROM {}) SELECT * FROM x",
    "SELECT region FROM orders_1 UNION SELECT * FROM {}",
    "SELECT (SELECT count(*) FROM {}) FROM orders_1",
    "SELECT * FROM orders_1 NATURAL JOIN {}",
    "SELECT * FROM orders_1, {}",
)
_STATEMENTS = (
    "SELECT 1; SELECT 2",
    "SELECT * FROM orders_1; DROP TABLE secret",
    "WITH x AS (DELETE FROM orders_1 RETURNING *) SELECT * FROM x",
    "WITH x AS (INSERT INTO orders_1 VALUES ('x') RETURNING *) SELECT * FROM x",
    "WITH x AS (UPDATE orders_1 SET region = 'x' RETURNING *) SELECT * FROM x",
    "WITH secret AS (SELECT * FROM secret) SELECT * FROM secret",
    'WITH "A" AS (SELECT 1) SELECT * FROM a',
    "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x) SELECT count(*) FROM x",
    "SELECT * INTO x FROM orders_1",
    "SELECT * FROM orders_1 FOR UPDATE",
    "SELECT * FROM orders_1 FOR SHARE NOWAIT",
    "SELECT * FROM orders_1 TABLESAMPLE SYSTEM (10)",
    "SELECT * FROM orders_1 WHERE region = $1",
    "SELECT * FROM orders_1 LIMIT (SELECT count(*) FROM secret)",
    "SELECT * FROM orders_1 FETCH FIRST 3 ROWS ONLY",
    "COPY orders_1 TO '/tmp/x'",
    "COPY orders_1 TO PROGRAM 'id'",
    "COPY (SELECT 1) TO STDOUT",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION postgres",
    "SET transaction_read_only = off",
    "RESET ALL",
    "SHOW ALL",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "LOCK TABLE orders_1",
    "LISTEN x",
    "NOTIFY x",
    "DO $$ BEGIN PERFORM pg_sleep(9); END $$",
    "CALL f()",
    "PREPARE x AS SELECT 1",
    "EXECUTE x",
    "DECLARE c CURSOR FOR SELECT 1",
    "FETCH 1 FROM query",
    "EXPLAIN ANALYZE SELECT * FROM orders_1",
    "VACUUM",
    "TABLE secret",
    "VALUES (1)",
    "INSERT INTO orders_1 VALUES ('x')",
    "UPDATE orders_1 SET amount = 0",
    "DELETE FROM orders_1",
    "MERGE INTO orders_1 USING secret ON true WHEN MATCHED THEN DELETE",
    "TRUNCATE orders_1",
    "CREATE TABLE x (a int)",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE EXTENSION dblink",
    "ALTER ROLE groundwork SUPERUSER",
    "GRANT ALL ON secret TO groundwork",
    "DROP VIEW reporting.orders",
    "SELECT word FROM orders_1",
    "SELECT ctid FROM orders_1",
    "SELECT xmin FROM orders_1",
    "SELECT tableoid FROM orders_1",
    "SELECT orders_1 FROM orders_1",
    "SELECT (orders_1).region FROM orders_1",
    "SELECT orders_1.* IS NULL, row(orders_1.*) FROM orders_1",
    "",
    ";",
    "-- nothing",
)
_EXPRESSIONS = (
    "substring(region from '(a+)+$')",  # a regular expression, like all following cases
    "substring(region, '(a+)+$')",
    "substr(region, '(a+)+$')",
    "substring(region from region)",
    "substring(region, 1 + region)",
    "substring(region, region * 1)",
    "substring(region from ('(a' || '+)+$'))",
    "substring(region from coalesce(region, ''))",
    "substring(region from cast('(a+)+$' as text))",
    "substring(region from (select region from orders_1))",
    "substring(region from case when paid then region else region end)",
    "substring(region from '%#\"a#\"%' for '#')",
    "pg_sleep(10)",
    "pg_catalog.pg_sleep(10)",
    '"pg_sleep"(10)',
    "pg_sleep_for('1 minute')",
    "pg_read_file('/etc/passwd')",
    "pg_read_binary_file('/etc/passwd')",
    "pg_ls_dir('/')",
    "pg_stat_file('/etc/passwd')",
    "lo_import('/etc/passwd')",
    "lo_export(1, '/tmp/x')",
    "lo_get(1)",
    "lo_from_bytea(0, 'x')",
    "lo_create(0)",
    "lo_unlink(1)",
    "dblink('host=127.0.0.1', 'SELECT 1')",
    "dblink_connect('host=127.0.0.1')",
    "query_to_xml('SELECT * FROM secret', true, true, '')",
    "table_to_xml('secret', true, true, '')",
    "database_to_xml(true, true, '')",
    "cursor_to_xml('query', 1, true, true, '')",
    "set_config('role', 'postgres', false)",
    "current_setting('data_directory')",
    "current_user",
    "session_user",
    "current_database()",
    "version()",
    "inet_server_addr()",
    "pg_terminate_backend(1)",
    "pg_cancel_backend(1)",
    "pg_reload_conf()",
    "pg_advisory_lock(1)",
    "pg_notify('a', 'b')",
    "pg_logical_emit_message(true, 'a', 'b')",
    "pg_current_logfile()",
    "pg_get_viewdef('reporting.orders')",
    "pg_relation_size('secret')",
    "has_table_privilege('secret', 'SELECT')",
    "col_description(1, 1)",
    "obj_description(1)",
    "to_regclass('secret')",
    "nextval('s')",
    "setval('s', 1)",
    "txid_current()",
    "'secret'::regclass",
    "CAST('secret' AS regclass)",
    "'secret'::regclass::oid",
    "'x'::regproc",
    "'postgres'::regrole",
    "'<a/>'::xml",
    "'{}'::json",
    "'{}'::jsonb ->> 'a'",
    "region::reporting.orders",
    "repeat('x', 1000000000)",
    "lpad('x', 1000000000)",
    "rpad('x', 1000000000)",
    "string_agg(region, ',')",
    "array_agg(region)",
    "json_agg(region)",
    "xmlagg(region)",
    "array_fill(1, ARRAY[100000000])",
    "ARRAY(SELECT word FROM secret)",
    "generate_series(1, 1000000000)",
    "regexp_replace(region, '(a+)+$', 'x')",
    "region ~ '(a+)+$'",
    "region SIMILAR TO '(a+)+'",
    "format('%1000000000s', 'x')",
    "convert_from('x', 'UTF8')",
    "encode('x', 'base64')",
    "random()",
    "gen_random_uuid()",
    "pg_typeof(region)",
    "$1",
    "(SELECT word FROM secret)",
    "CASE WHEN (SELECT count(*) FROM secret) > 0 THEN 1 END",
    "sum(amount) OVER (ORDER BY (SELECT word FROM secret))",
    'region COLLATE "de_DE"',
    "my_function(region)",
    "region OPERATOR(pg_catalog.||) 'x'",
    "date_part('year FROM now()), (SELECT word FROM public.secret) AS x --', ordered)",
    "date_part('a''b', ordered)",
    """extract("year FROM now()), (SELECT word FROM public.secret) AS x --" FROM ordered)""",
)
_BOMBS = (
    f"SELECT {'(' * 1200}1{')' * 1200} FROM orders_1",
    f"SELECT {'1 + ' * 900}1 FROM orders_1",
    f"SELECT {'a' * 5000} FROM orders_1",
    " UNION ALL ".join(["SELECT region FROM orders_1"] * 150),
    "WITH c0 AS (SELECT * FROM orders_1), "
    + ", ".join(f"c{n + 1} AS (SELECT x.*, y.* FROM c{n} x, c{n} y)" for n in range(30))
    + " SELECT * FROM c30",
    "WITH c0 AS (SELECT amount AS a FROM orders_1), "
    + ", ".join(f"c{n + 1} AS (SELECT a + a AS a FROM c{n})" for n in range(20))
    + " SELECT a FROM c20",
    f"{'SELECT a || a AS a FROM (' * 20}SELECT region AS a FROM orders_1{') x' * 20}",
    "SELECT amount FROM orders_1 o WHERE EXISTS ("
    f"{'SELECT a + a AS a FROM (' * 20}SELECT o.amount AS a{') x' * 20})",
    "WITH c0 AS (SELECT 1 AS a UNION SELECT 2), "
    + ", ".join(f"c{n + 1}(a) AS ((SELECT a + a FROM c{n}) UNION SELECT 1)" for n in range(20))
    + " SELECT a FROM c20",
    f"SELECT amount AS a0, {', '.join(f'a{n} + a{n} AS a{n + 1}' for n in range(60))} FROM orders_1",
)
ATTACKS = (
    *(place.format(foreign) for place, foreign in product(_FROM, _FOREIGN)),
    *_STATEMENTS,
    *(f"SELECT {expression} FROM orders_1" for expression in _EXPRESSIONS),
    *(f"SELECT region FROM orders_1 WHERE {expression} IS NOT NULL" for expression in _EXPRESSIONS),
    *_BOMBS,
)

ALLOWED = (
    "SELECT region, sum(amount) AS total FROM orders_1 GROUP BY region ORDER BY total DESC LIMIT 5",
    "SELECT date_trunc('month', ordered) AS month, avg(amount) FROM orders_1 GROUP BY 1",
    "SELECT extract(year FROM ordered) AS year, round(sum(amount)::numeric, 2) FROM orders_1 GROUP BY 1",
    "SELECT count(*) FILTER (WHERE paid), count(DISTINCT region) FROM orders_1",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM orders_1",
    "SELECT region, amount, rank() OVER (PARTITION BY region ORDER BY amount DESC) FROM orders_1",
    "SELECT DISTINCT ON (region) region, amount FROM orders_1 ORDER BY region, amount DESC",
    "WITH big AS (SELECT region FROM orders_1 WHERE amount > 10) SELECT region, count(*) FROM big GROUP BY 1",
    "SELECT region FROM orders_1 WHERE region ILIKE 'n%' AND ordered >= current_date - interval '1 year'",
    "SELECT 100.0 * sum(amount) FILTER (WHERE paid) / nullif(sum(amount), 0) AS share FROM orders_1",
    "SELECT substring(region from 2 for length(region) - 1), substring(region, 1, 3) FROM orders_1",
    "SELECT substring(region from cast(amount as int) for strpos(region, '-')) FROM orders_1",
    "SELECT to_char(ordered, 'YYYY-MM') AS month, max(amount) - min(amount) FROM orders_1 GROUP BY 1",
)


@pytest.mark.attack("sql")
@pytest.mark.parametrize("sql", ATTACKS)
def test_nothing_foreign_is_asked_of_a_database(sql: str) -> None:
    with pytest.raises(InvalidQueryError):
        guard_query(sql, PLACES, "postgres")


@pytest.mark.parametrize("sql", ALLOWED)
def test_a_usual_query_reads_the_view_in_its_schema(sql: str) -> None:
    executed = guard_query(sql, PLACES, "postgres").executed
    assert '"reporting"."orders"' in executed
    assert "LIMIT" in executed


def test_a_long_type_is_cut_in_a_refusal() -> None:
    with pytest.raises(InvalidQueryError, match=f"The type {'t' * 40} is not allowed"):
        guard_query(f"SELECT region::{'t' * 60} FROM orders_1", PLACES, "postgres")
