"""Allow-list for SQL queries. Runs in the worker process.

Anything not on a list is refused: statements, clauses, functions, tables, columns. The executed SQL is
generated from the checked tree and never taken from the input. This is the first line of defence; the second
is the engine, whose connection has only permitted files.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SchemaError, SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from shared.platform.errors import InvalidQueryError
from shared.tables.models import Dialect
from shared.tables.queries import MAX_ROWS, MAX_SQL_CHARS, QueryTable

logging.getLogger("sqlglot").disabled = True  # it logs SQL that it can't parse

_MAX_NODES = 1500
_MAX_STARS = 5
_MAX_SPELT_OUT = 20_000  # nodes; PostgreSQL plans this many in a quarter of a second
_WORD = re.compile(r"\w+", re.ASCII)

# Parts of queries.
_PARTS = frozenset({
    exp.Alias, exp.All, exp.And, exp.Any, exp.Between, exp.Boolean, exp.Case, exp.Cast, exp.Column, exp.CTE,
    exp.DataType, exp.Distinct, exp.Div, exp.DPipe, exp.EQ, exp.Escape, exp.Except, exp.Exists, exp.From,
    exp.Glob, exp.Group, exp.GT, exp.GTE, exp.Having, exp.Identifier, exp.If, exp.In, exp.Intersect, exp.Is,
    exp.Join, exp.Like, exp.Limit, exp.Literal, exp.LT, exp.LTE, exp.Mod, exp.Mul, exp.NEQ, exp.Neg, exp.Not,
    exp.Null, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Offset, exp.Or, exp.Order, exp.Ordered, exp.Paren,
    exp.Select, exp.Star, exp.Sub, exp.Subquery, exp.Table, exp.TableAlias, exp.Tuple, exp.Union, exp.Where,
    exp.Window, exp.WindowSpec, exp.With, exp.Add, exp.Filter, exp.Var, exp.CurrentDate, exp.Collate,
})  # fmt: skip

# Functions known to sqlglot, and other functions by name. None of them reads files or settings, or
# makes a long text from a short one: `printf`, `replace`, `zeroblob`, `hex` and `group_concat` are missing.
_FUNCTIONS = frozenset({
    exp.Abs, exp.Avg, exp.Ceil, exp.Coalesce, exp.Count, exp.CumeDist, exp.Date, exp.DenseRank,
    exp.FirstValue, exp.Floor, exp.Lag, exp.LastValue, exp.Lead, exp.Length, exp.Ln, exp.Lower, exp.Max,
    exp.Min, exp.Ntile, exp.Nullif, exp.PercentRank, exp.Pow, exp.Rank, exp.Round, exp.RowNumber, exp.Sign,
    exp.Sqrt, exp.StrPosition, exp.Substring, exp.Sum, exp.TimeToStr, exp.TsOrDsToDate, exp.TsOrDsToTimestamp,
    exp.Trim, exp.Upper, exp.Exp,
})  # fmt: skip
FUNCTION_NAMES = frozenset(
    {
        "abs", "avg", "ceil", "ceiling", "coalesce", "count", "cume_dist", "date", "datetime", "dense_rank",
        "exp", "first_value", "floor", "glob", "ifnull", "iif", "instr", "julianday", "lag", "last_value",
        "lead", "length", "like", "ln", "lower", "ltrim", "max", "min", "ntile", "nullif", "percent_rank",
        "pow", "power", "rank", "round", "row_number", "rtrim", "sign", "sqrt", "strftime", "substr",
        "substring", "sum", "time", "total", "trim", "unixepoch", "upper", "current_date",
    }
)  # fmt: skip
# Of PostgreSQL `repeat`, `lpad`, `string_agg`, `generate_series`, regular expressions and everything that
# reads files, settings, the catalog or another query are missing.
_POSTGRES_FUNCTIONS = frozenset({
    exp.Abs, exp.Avg, exp.Ceil, exp.Coalesce, exp.Count, exp.CumeDist, exp.CurrentTimestamp, exp.DenseRank,
    exp.Exp, exp.Extract, exp.FirstValue, exp.Floor, exp.Greatest, exp.Lag, exp.LastValue, exp.Lead,
    exp.Least, exp.Left, exp.Length, exp.Ln, exp.LogicalAnd, exp.LogicalOr, exp.Lower, exp.Max, exp.Min,
    exp.Ntile, exp.Nullif, exp.PercentileCont, exp.PercentileDisc, exp.PercentRank, exp.Pow, exp.Rank,
    exp.Right, exp.Round, exp.RowNumber, exp.Sign, exp.SplitPart, exp.Sqrt, exp.Stddev, exp.StddevPop,
    exp.StddevSamp, exp.StrPosition, exp.Substring, exp.Sum, exp.TimestampTrunc, exp.TimeToStr, exp.Trim,
    exp.Trunc, exp.Upper, exp.Variance, exp.VariancePop, exp.Mod, exp.Case, exp.Cast,
})  # fmt: skip
_POSTGRES_NAMES = frozenset(
    {
        "abs", "age", "avg", "bool_and", "bool_or", "ceil", "coalesce", "count", "cume_dist", "current_date",
        "date_part", "date_trunc", "dense_rank", "exp", "extract", "first_value", "floor", "greatest", "lag",
        "last_value", "lead", "least", "left", "length", "ln", "lower", "make_date", "max", "min", "mod",
        "now", "ntile", "nullif", "percent_rank", "percentile_cont", "percentile_disc", "position", "power",
        "rank", "right", "round", "row_number", "sign", "split_part", "sqrt", "stddev", "strpos", "substring",
        "sum", "to_char", "trim", "trunc", "upper", "variance",
    }
)  # fmt: skip
_POSTGRES_PARTS = frozenset({exp.AtTimeZone, exp.DataTypeParam, exp.ILike, exp.Interval, exp.WithinGroup})
_INTEGERS = frozenset({exp.DType.BIGINT, exp.DType.INT, exp.DType.SMALLINT})
_TYPES = frozenset({
    exp.DType.BIGINT, exp.DType.BOOLEAN, exp.DType.CHAR, exp.DType.DATE, exp.DType.DECIMAL, exp.DType.DOUBLE,
    exp.DType.FLOAT, exp.DType.INT, exp.DType.INTERVAL, exp.DType.SMALLINT, exp.DType.TEXT, exp.DType.TIME,
    exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.VARCHAR,
})  # fmt: skip


@dataclass(frozen=True)
class _Rules:
    """The allowed parts of one SQL dialect.

    Attributes:
        name: of the dialect.
        types: allowed targets of a cast; None allows any, where types can't read anything.
    """

    dialect: Dialect
    name: str
    parts: frozenset[type[exp.Expr]]
    names: frozenset[str]
    types: frozenset[exp.DType] | None = field(default=None)


_RULES: Mapping[Dialect, _Rules] = {
    "sqlite": _Rules("sqlite", "SQLite", _PARTS | _FUNCTIONS, FUNCTION_NAMES),
    "postgres": _Rules(
        "postgres",
        "PostgreSQL",
        (_PARTS - {exp.Glob, exp.Collate}) | _POSTGRES_PARTS | _POSTGRES_FUNCTIONS,
        _POSTGRES_NAMES,
        _TYPES,
    ),
}


@dataclass(frozen=True)
class Guarded:
    """A query that may run.

    Attributes:
        tree: as written, checked, with a row limit.
        shown: its text.
        executed: its text with the tables' places: attached files or schemas.
        columns: names of the result's columns.
        source: SQL that selects the sheet lines the result comes from; "" if there is no simple one.
    """

    tree: exp.Query
    shown: str
    executed: str
    columns: tuple[str, ...]
    source: str


def guarded(sql: str, tables: Mapping[str, tuple[str, QueryTable]], dialect: Dialect = "sqlite") -> Guarded:
    """Check a query against the allow-list.

    Args:
        tables: readable tables by SQL name: the attached file's or schema's name, and the table.

    Raises:
        InvalidQueryError: names the violated rule and the allowed alternatives.
    """
    rules = _RULES[dialect]
    tree = _parsed(sql, rules)
    _check_parts(tree, rules)
    if dialect == "postgres":
        for call in tree.find_all(exp.Substring):
            _check_positions(call)
    places = {name.casefold(): place for name, place in tables.items()}
    _check_tables(tree, places)
    _limit(tree)
    qualified = _qualified(tree, places, dialect)
    _check_growth(qualified)
    _placed(qualified, places)
    return Guarded(
        tree=tree,
        shown=text_of(tree, dialect),
        executed=text_of(qualified, dialect),
        columns=_columns(tree, qualified, dialect),
        source=_source(qualified, places),
    )


def _parsed(sql: str, rules: _Rules) -> exp.Query:
    if len(sql) > MAX_SQL_CHARS:
        raise _refused(f"The SQL has more than {MAX_SQL_CHARS:,} characters.", "Write a shorter query.")
    try:
        statements = [one for one in sqlglot.parse(sql, read=rules.dialect) if one is not None]
    except (SqlglotError, RecursionError):
        raise _refused("The SQL cannot be parsed.", f"Write one SELECT in {rules.name}'s SQL.") from None
    if len(statements) != 1:
        raise _refused(f"There are {len(statements)} statements.", "Write one SELECT.")
    tree = statements[0]
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise _refused("Only SELECT is allowed.", "Write one SELECT, or WITH … SELECT.")
    return tree


def _check_parts(tree: exp.Query, rules: _Rules) -> None:
    for count, node in enumerate(tree.walk(), start=1):
        if count > _MAX_NODES:
            raise _refused("The query has too many parts.", "Write a simpler query.")
        is_named = isinstance(node, exp.Anonymous) and node.name.casefold() in rules.names
        # Rendered unchanged even if it comes from a string: date_part('…', d).
        is_raw = isinstance(node, exp.Var) and not _WORD.fullmatch(node.name)
        if (type(node) not in rules.parts and not is_named) or is_raw:
            raise _not_allowed(node, rules)
        if isinstance(node, exp.DataType) and rules.types is not None and node.this not in rules.types:
            raise _refused(f"The type {node.sql()[:40]} is not allowed.", "Cast to plain types.")
        if node.args.get("recursive"):
            raise _refused("WITH RECURSIVE is not allowed.", "Write it without recursion.")
        if isinstance(node, exp.Join) and node.args.get("method"):
            raise _refused("NATURAL JOIN is not allowed.", "Write JOIN … ON.")
    # Each level may double the columns of the level below.
    if sum(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)) > _MAX_STARS:
        raise _refused(f"There are more than {_MAX_STARS} times *.", "Name the columns.")


def _check_positions(call: exp.Substring) -> None:
    """Refuse text as a position: PostgreSQL would read it as a regular expression of unlimited cost."""
    places = [place for name in ("start", "length") if (place := call.args.get(name)) is not None]
    if not all(map(_is_number, places)):
        raise _refused(
            "SUBSTRING takes numbers as its position and length.", "CAST a column or text to INT there."
        )


def _is_number(node: exp.Expr) -> bool:
    """Return whether an expression is a number for any column values."""
    if isinstance(node, exp.Literal):
        return not node.is_string
    if isinstance(node, exp.Cast):
        return node.to.this in _INTEGERS
    if isinstance(node, exp.Paren | exp.Neg):
        return _is_number(node.this)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return _is_number(node.this) and _is_number(node.expression)
    return isinstance(node, exp.Length | exp.StrPosition)


def _not_allowed(node: exp.Expr, rules: _Rules) -> InvalidQueryError:
    if not isinstance(node, exp.Func):
        return _refused(f"{node.key.upper()} is not allowed.", "Use plain SELECT, JOIN, WHERE and GROUP BY.")
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    allowed = ", ".join(sorted(rules.names))
    return _refused(f"The function {name[:40]} is not allowed.", f"Allowed functions: {allowed}.")


def _check_tables(tree: exp.Query, places: Mapping[str, tuple[str, QueryTable]]) -> None:
    """Require each table to be permitted, or defined by a WITH clause in scope."""
    seen = set()
    for scope in traverse_scope(tree):
        for table in scope.tables:
            seen.add(id(table))
            # Dots and functions in FROM would reach other files, the schema, or virtual tables.
            extra = {name for name, value in table.args.items() if value} - {"this", "alias", "joins"}
            if not isinstance(table.this, exp.Identifier) or extra:
                raise _refused("A table is named by its name alone.", _names(places))
            is_given = isinstance(scope.sources.get(table.alias_or_name), Scope)
            if not is_given and table.name.casefold() not in places:
                raise _refused(f"There is no table {table.name[:60]!r}.", _names(places))
    if any(id(table) not in seen for table in tree.find_all(exp.Table)):
        raise _refused("A table is used where no table is allowed.", _names(places))


def _names(places: Mapping[str, tuple[str, QueryTable]]) -> str:
    return f"Tables: {', '.join(sorted(places)) or 'none'}."


def _limit(tree: exp.Query) -> None:
    """Limit the query to one row more than is fetched, to detect longer results."""
    limit = tree.args.get("limit")
    if limit is None:
        tree.set("limit", exp.Limit(expression=exp.Literal.number(MAX_ROWS + 1)))
        return
    count = limit.expression
    if not isinstance(count, exp.Literal) or not count.name.isdigit():
        raise _refused("LIMIT takes a number.", f"At most {MAX_ROWS:,} rows are fetched.")
    limit.set("expression", exp.Literal.number(min(int(count.name), MAX_ROWS + 1)))


def _qualified(tree: exp.Query, places: Mapping[str, tuple[str, QueryTable]], dialect: Dialect) -> exp.Query:
    """Return the tree with every column resolved to its table and every `*` expanded."""
    column_names = {column.name.casefold() for column in tree.find_all(exp.Column)}
    schema: dict[str, object] = {
        name: dict.fromkeys(
            (*table.columns, *(hidden for hidden in table.hidden if hidden in column_names)), "TEXT"
        )
        for name, (_, table) in places.items()
    }
    try:
        _check_projections(tree, schema, dialect)
        qualified = qualify(tree.copy(), dialect=dialect, schema=schema)
    except (SqlglotError, RecursionError) as failed:
        columns = {name: ", ".join(table.columns)[:600] for name, (_, table) in places.items()}
        reason = str(failed).splitlines()[0][:200]
        hint = "; ".join(f"{name}: {listed}" for name, listed in columns.items())
        raise _refused(f"A column is unknown or ambiguous: {reason}", f"Columns: {hint}.") from None
    if not isinstance(qualified, exp.Query) or qualified.find(exp.TableColumn):
        raise _refused("A row as a whole is not allowed.", "Name the columns.")
    return qualified


def _check_projections(tree: exp.Query, schema: dict[str, object], dialect: Dialect) -> None:
    """Refuse columns calculated from another column's alias in the same SELECT.

    No engine supports this, and expanding the aliases would double the query each time.

    Raises:
        SchemaError: a column refers to an alias.
    """
    resolved = qualify(
        tree.copy(), dialect=dialect, schema=schema, expand_alias_refs=False, validate_qualify_columns=False
    )
    for select in resolved.find_all(exp.Select):
        for column in (
            column for projection in select.expressions for column in projection.find_all(exp.Column)
        ):
            if not column.table and column.parent_select is select:
                raise SchemaError(f"Column {column.name[:60]!r} cannot be resolved.")


def _check_growth(tree: exp.Query) -> None:
    """Refuse queries that grow large when columns of WITH clauses and subqueries are expanded.

    Engines expand them before execution, and PostgreSQL checks neither time nor memory meanwhile: sixteen
    nested doublings took 1.5 GB of the server's memory.
    """
    read = {
        id(column): source.expression
        for scope in traverse_scope(tree)
        for column in scope.columns
        if isinstance(source := scope.sources.get(column.table), Scope)
        and isinstance(source.expression, exp.Query)
    }
    sizes: dict[int, int] = {}

    def size(node: exp.Expr) -> int:
        query = read.get(id(node))
        if query is None:
            return 1
        if id(node) not in sizes:
            places = {name: slice(place, place + 1) for place, name in enumerate(query.named_selects)}
            sizes[id(node)] = sum(map(size, _calculating(query, places.get(node.name, slice(None)))))
        return sizes[id(node)]

    if sum(map(size, tree.walk())) > _MAX_SPELT_OUT:
        raise _refused("Its subqueries make the query too large.", "Write a simpler query.")


def _calculating(query: exp.Expr, columns: slice) -> Iterator[exp.Expr]:
    """Yield the nodes that calculate columns of a query, in each SELECT of a UNION."""
    query = query.unnest()
    if isinstance(query, exp.SetOperation):
        yield from _calculating(query.left, columns)
        yield from _calculating(query.right, columns)
    elif isinstance(query, exp.Select):
        for projection in query.selects[columns]:
            yield from projection.walk()


def _placed(tree: exp.Query, places: Mapping[str, tuple[str, QueryTable]]) -> None:
    """Replace table names with qualified names in their files or schemas."""
    for scope in traverse_scope(tree):
        for table in scope.tables:
            if isinstance(scope.sources.get(table.alias_or_name), Scope):
                continue
            if table.name.casefold() not in places:  # a WITH name that differs only in case
                raise _refused(f"There is no table {table.name[:60]!r}.", _names(places))
            file, stored = places[table.name.casefold()]
            table.set("this", exp.to_identifier(stored.stored_name, quoted=True))
            table.set("db", exp.to_identifier(file, quoted=True))


def _columns(original: exp.Query, qualified: exp.Query, dialect: Dialect) -> tuple[str, ...]:
    """Return the result's column names, with the expression for unnamed columns."""
    names = qualified.named_selects
    selects = original.selects if len(original.selects) == len(names) else qualified.selects
    return tuple(
        text_of(select, dialect) if name.startswith("_col_") else name
        for name, select in zip(names, selects, strict=True)
    )


def _source(tree: exp.Query, places: Mapping[str, tuple[str, QueryTable]]) -> str:
    """Return SQL that selects the lines of the rows used by a query over a single table."""
    tables = list(tree.find_all(exp.Table))
    is_simple = isinstance(tree, exp.Select) and len(tables) == 1 and not tree.find(exp.Subquery, exp.With)
    has_lines = all(any("_row" in table.hidden for _, table in places.values()) for _ in tables)
    if not is_simple or not has_lines:
        return ""
    lines = exp.Select(expressions=[exp.column("_row", table=tables[0].alias, quoted=True)])
    is_group = tree.args.get("group") or tree.find(exp.AggFunc)
    for part in ("from_", "where", *(() if is_group else ("order", "limit", "offset"))):
        if tree.args.get(part) is not None:
            lines.set(part, tree.args[part].copy())
    return text_of(lines, "sqlite")


def text_of(tree: exp.Expr, dialect: Dialect) -> str:
    """Render the tree as SQL without comments."""
    return str(tree.sql(dialect=dialect, comments=False))


def _refused(reason: str, hint: str) -> InvalidQueryError:
    return InvalidQueryError(reason, hint)
