"""Allow-list that every SQL query must pass. Runs in the worker process.

Statements, clauses, functions, tables and columns are refused unless they are listed. The executed SQL is
generated from the checked syntax tree, never copied from the input. The guard is the first line of defence;
the second is the engine, which only has a connection to permitted files or views.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

import sqlglot
from sqlglot import exp
from sqlglot.errors import SchemaError, SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from shared.platform.errors import InvalidQueryError
from shared.tables.models import Dialect
from shared.tables.queries import MAX_ROWS, MAX_SQL_CHARS, QueryTable
from shared.tables.sql_kinds import check_kinds

logging.getLogger("sqlglot").disabled = True  # sqlglot would log queries that it can't parse

_MAX_NODES = 1500
_MAX_STARS = 5
_MAX_SPELT_OUT = 20_000  # in nodes; PostgreSQL plans a query of this size in 0.25 s
_WORD = re.compile(r"\w+", re.ASCII)

# Expressions that may occur in queries.
_PARTS = frozenset({
    exp.Alias, exp.All, exp.And, exp.Any, exp.Between, exp.Boolean, exp.Case, exp.Cast, exp.Column, exp.CTE,
    exp.DataType, exp.Distinct, exp.Div, exp.DPipe, exp.EQ, exp.Escape, exp.Except, exp.Exists, exp.From,
    exp.Glob, exp.Group, exp.GT, exp.GTE, exp.Having, exp.Identifier, exp.If, exp.In, exp.Intersect, exp.Is,
    exp.Join, exp.Like, exp.Limit, exp.Literal, exp.LT, exp.LTE, exp.Mod, exp.Mul, exp.NEQ, exp.Neg, exp.Not,
    exp.Null, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Offset, exp.Or, exp.Order, exp.Ordered, exp.Paren,
    exp.Select, exp.Star, exp.Sub, exp.Subquery, exp.Table, exp.TableAlias, exp.Tuple, exp.Union, exp.Where,
    exp.Window, exp.WindowSpec, exp.With, exp.Add, exp.Filter, exp.Var, exp.CurrentDate, exp.Collate,
})  # fmt: skip

# Allowed functions: those known to sqlglot by class, all others by name. None may read files or settings, or
# turn a short text into a long one. That excludes `printf`, `replace`, `zeroblob`, `hex` and `group_concat`.
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
# Position of the first modifier among the arguments of a date function.
_FIRST_MODIFIER = {"date": 1, "datetime": 1, "julianday": 1, "time": 1, "unixepoch": 1, "strftime": 2}
_MONTHS = re.compile(r"\s*[+-]?[\d.]+(?:\s+(?:month|year)s?\b|-\d\d-\d\d)", re.IGNORECASE)
_ROUNDINGS = ("floor", "ceiling")
# The same for PostgreSQL. That excludes `repeat`, `lpad`, `string_agg`, `generate_series`, regular
# expressions, and functions that read files, settings, the catalog or other queries.
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
    """The allow-list for one SQL dialect.

    Attributes:
        name: name of the database product, for error messages.
        parts: allowed classes of expressions.
        names: allowed names of functions.
        types: allowed target types of a cast; None allows all.
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
class GuardedQuery:
    """A query that passed the guard.

    Attributes:
        tree: syntax tree of the query, with a row limit added.
        sql: SQL of `tree`, for users.
        executed: SQL to execute, in which tables are qualified by attached file or schema.
        columns: names of the result columns.
        source: SQL for the sheet lines behind the result; "" if it can't be determined.
    """

    tree: exp.Query
    sql: str
    executed: str
    columns: tuple[str, ...]
    source: str


def guard_query(
    sql: str, tables: Mapping[str, tuple[str, QueryTable]], dialect: Dialect = "sqlite"
) -> GuardedQuery:
    """Check a query against the allow-list and return it in executable form.

    Args:
        tables: readable tables by SQL name, each with the name of its attached file or schema.

    Raises:
        InvalidQueryError: the query breaks a rule. The error names the rule and allowed alternatives.
    """
    rules = _RULES[dialect]
    tree = _parse(sql, rules)
    _check_parts(tree, rules)
    if dialect == "postgres":
        for call in tree.find_all(exp.Substring):
            _check_positions(call)
    places = {name.casefold(): place for name, place in tables.items()}
    _check_tables(tree, places)
    _limit(tree)
    if dialect == "sqlite":
        for date_call in tree.find_all(exp.Anonymous):
            _end_in_month(date_call)
    qualified = _qualify(tree, places, dialect)
    _check_growth(qualified)
    if dialect == "sqlite":  # PostgreSQL checks types itself
        check_kinds(qualified, {name: table for name, (_, table) in places.items()})
    _qualify_tables(qualified, places)
    return GuardedQuery(
        tree=tree,
        sql=text_of(tree, dialect),
        executed=text_of(qualified, dialect),
        columns=_columns(tree, qualified, dialect),
        source=_source(qualified, places),
    )


def _parse(sql: str, rules: _Rules) -> exp.Query:
    if len(sql) > MAX_SQL_CHARS:
        raise _invalid_query(f"The SQL has more than {MAX_SQL_CHARS:,} characters.", "Write a shorter query.")
    try:
        statements = [one for one in sqlglot.parse(sql, read=rules.dialect) if one is not None]
    except (SqlglotError, RecursionError):
        raise _invalid_query(
            "The SQL cannot be parsed.", f"Write one SELECT in {rules.name}'s SQL."
        ) from None
    if len(statements) != 1:
        raise _invalid_query(f"There are {len(statements)} statements.", "Write one SELECT.")
    tree = statements[0]
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise _invalid_query("Only SELECT is allowed.", "Write one SELECT, or WITH … SELECT.")
    return tree


def _check_parts(tree: exp.Query, rules: _Rules) -> None:
    for count, node in enumerate(tree.walk(), start=1):
        if count > _MAX_NODES:
            raise _invalid_query("The query has too many parts.", "Write a simpler query.")
        is_named = isinstance(node, exp.Anonymous) and node.name.casefold() in rules.names
        # Reject special characters: sqlglot renders these nodes unchanged, even if they come from a string as
        # in date_part('…', d).
        is_raw = isinstance(node, exp.Var) and not _WORD.fullmatch(node.name)
        if (type(node) not in rules.parts and not is_named) or is_raw:
            raise _not_allowed_error(node, rules)
        if isinstance(node, exp.DataType) and rules.types is not None and node.this not in rules.types:
            raise _invalid_query(f"The type {node.sql()[:40]} is not allowed.", "Cast to plain types.")
        if node.args.get("recursive"):
            raise _invalid_query("WITH RECURSIVE is not allowed.", "Write it without recursion.")
        if isinstance(node, exp.Join) and node.args.get("method"):
            raise _invalid_query("NATURAL JOIN is not allowed.", "Write JOIN … ON.")
    # Each nested * may double the number of columns.
    if sum(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)) > _MAX_STARS:
        raise _invalid_query(f"The query uses * more than {_MAX_STARS} times.", "Name the columns.")


def _check_positions(call: exp.Substring) -> None:
    """Refuse a text as position or length: PostgreSQL would treat it as a regular expression, at unlimited
    cost.
    """
    places = [place for name in ("start", "length") if (place := call.args.get(name)) is not None]
    if not all(map(_is_number, places)):
        raise _invalid_query(
            "The position and length of SUBSTRING must be numbers.",
            "Use CAST(… AS INT) for a column or text.",
        )


def _is_number(node: exp.Expr) -> bool:
    """Return whether an expression is a number regardless of the data."""
    if isinstance(node, exp.Literal):
        return not node.is_string
    if isinstance(node, exp.Cast):
        return node.to.this in _INTEGERS
    if isinstance(node, exp.Paren | exp.Neg):
        return _is_number(node.this)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return _is_number(node.this) and _is_number(node.expression)
    return isinstance(node, exp.Length | exp.StrPosition)


def _not_allowed_error(node: exp.Expr, rules: _Rules) -> InvalidQueryError:
    if not isinstance(node, exp.Func):
        return _invalid_query(
            f"{node.key.upper()} is not allowed.", "Use plain SELECT, JOIN, WHERE and GROUP BY."
        )
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    allowed = ", ".join(sorted(rules.names))
    return _invalid_query(f"The function {name[:40]} is not allowed.", f"Allowed functions: {allowed}.")


def _check_tables(tree: exp.Query, places: Mapping[str, tuple[str, QueryTable]]) -> None:
    """Refuse tables that are neither permitted nor defined by a WITH clause in scope."""
    seen = set()
    for scope in traverse_scope(tree):
        for table in scope.tables:
            seen.add(id(table))
            # Dots and functions in FROM would give access to other files, the schema, or virtual tables.
            extra = {name for name, value in table.args.items() if value} - {"this", "alias", "joins"}
            if not isinstance(table.this, exp.Identifier) or extra:
                raise _invalid_query("Tables must be given by their plain names.", _names(places))
            is_given = isinstance(scope.sources.get(table.alias_or_name), Scope)
            if not is_given and table.name.casefold() not in places:
                raise _invalid_query(f"There is no table {table.name[:60]!r}.", _names(places))
    if any(id(table) not in seen for table in tree.find_all(exp.Table)):
        raise _invalid_query("A table is used where no table is allowed.", _names(places))


def _names(places: Mapping[str, tuple[str, QueryTable]]) -> str:
    return f"Tables: {', '.join(sorted(places)) or 'none'}."


def _limit(tree: exp.Query) -> None:
    """Limit the query to one row more than is fetched, so that truncation can be detected."""
    limit = tree.args.get("limit")
    if limit is None:
        tree.set("limit", exp.Limit(expression=exp.Literal.number(MAX_ROWS + 1)))
        return
    count = limit.expression
    if not isinstance(count, exp.Literal) or not count.name.isdigit():
        raise _invalid_query("LIMIT must be a number.", f"At most {MAX_ROWS:,} rows are fetched.")
    limit.set("expression", exp.Literal.number(min(int(count.name), MAX_ROWS + 1)))


def _end_in_month(call: exp.Anonymous) -> None:
    """Add 'floor' to each modifier of a date function that may add months or years.

    SQLite would otherwise carry days that a month doesn't have into the next one: 31 May less three months
    would be 3 March.
    """
    first = _FIRST_MODIFIER.get(call.name.casefold())
    if first is None:
        return
    completed = list(call.expressions[:first])
    modifiers = call.expressions[first:]
    for modifier, following in zip_longest(modifiers, modifiers[1:]):
        completed.append(modifier)
        is_fixed = isinstance(modifier, exp.Literal) and not _MONTHS.match(modifier.name)
        if not is_fixed and not (isinstance(following, exp.Literal) and following.name in _ROUNDINGS):
            completed.append(exp.Literal.string("floor"))
    call.set("expressions", completed)


def _qualify(tree: exp.Query, places: Mapping[str, tuple[str, QueryTable]], dialect: Dialect) -> exp.Query:
    """Return a copy of the query with each column qualified by its table and each `*` expanded."""
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
        raise _invalid_query(f"A column is unknown or ambiguous: {reason}", f"Columns: {hint}.") from None
    if not isinstance(qualified, exp.Query) or qualified.find(exp.TableColumn):
        raise _invalid_query("A whole row can't be used as a value.", "Name the columns.")
    return qualified


def _check_projections(tree: exp.Query, schema: dict[str, object], dialect: Dialect) -> None:
    """Refuse columns that refer to the alias of another column in the same SELECT.

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
    """Refuse queries that become too large when WITH clauses and subqueries are expanded.

    Engines expand them before execution, and PostgreSQL limits neither time nor memory while doing so: a
    query that doubled its columns sixteen times used 1.5 GB of the server's memory.
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
            sizes[id(node)] = sum(map(size, _expression_nodes(query, places.get(node.name, slice(None)))))
        return sizes[id(node)]

    if sum(map(size, tree.walk())) > _MAX_SPELT_OUT:
        raise _invalid_query(
            "The query becomes too large when its subqueries are expanded.", "Write a simpler query."
        )


def _expression_nodes(query: exp.Expr, columns: slice) -> Iterator[exp.Expr]:
    """Yield the nodes of the expressions behind some columns of a query, including all parts of a UNION."""
    query = query.unnest()
    if isinstance(query, exp.SetOperation):
        yield from _expression_nodes(query.left, columns)
        yield from _expression_nodes(query.right, columns)
    elif isinstance(query, exp.Select):
        for projection in query.selects[columns]:
            yield from projection.walk()


def _qualify_tables(tree: exp.Query, places: Mapping[str, tuple[str, QueryTable]]) -> None:
    """Replace table names with the qualified names of the stored tables."""
    for scope in traverse_scope(tree):
        for table in scope.tables:
            if isinstance(scope.sources.get(table.alias_or_name), Scope):
                continue
            if table.name.casefold() not in places:  # differs from a WITH name only in case
                raise _invalid_query(f"There is no table {table.name[:60]!r}.", _names(places))
            file, stored = places[table.name.casefold()]
            table.set("this", exp.to_identifier(stored.stored_name, quoted=True))
            table.set("db", exp.to_identifier(file, quoted=True))


def _columns(original: exp.Query, qualified: exp.Query, dialect: Dialect) -> tuple[str, ...]:
    """Return the names of the result columns. A column without a name is represented by its SQL."""
    names = qualified.named_selects
    selects = original.selects if len(original.selects) == len(names) else qualified.selects
    return tuple(
        text_of(select, dialect) if name.startswith("_col_") else name
        for name, select in zip(names, selects, strict=True)
    )


def _source(tree: exp.Query, places: Mapping[str, tuple[str, QueryTable]]) -> str:
    """Return SQL for the sheet lines that a query reads, or "" if it uses several tables, subqueries or a
    view.
    """
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
    """Render an expression as SQL without comments."""
    return str(tree.sql(dialect=dialect, comments=False))


def _invalid_query(reason: str, hint: str) -> InvalidQueryError:
    return InvalidQueryError(reason, hint)
