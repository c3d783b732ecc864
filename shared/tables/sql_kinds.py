"""Check that SQL calculates only with numbers, and compares columns with values of their kind. Runs in the
worker process.

SQLite converts values silently instead: the average of the texts "1.234,5" and "n/a" is 0.617, the difference
of two dates is that of their years, and each text is more than each number.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from shared.platform.errors import InvalidQueryError
from shared.tables.cell_values import is_number
from shared.tables.models import RAW, ColumnKind
from shared.tables.queries import QueryTable

_CALCULATIONS = (
    exp.Sum, exp.Avg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Abs, exp.Round, exp.Ceil,
    exp.Floor, exp.Sqrt, exp.Ln, exp.Exp, exp.Pow, exp.Sign,
)  # fmt: skip
_ORDERINGS = (exp.GT, exp.GTE, exp.LT, exp.LTE)
_EQUALITIES = (exp.EQ, exp.NullSafeEQ)
_SAME_KIND = (
    exp.Paren,
    exp.Alias,
    exp.Min,
    exp.Max,
    exp.Nullif,
    exp.FirstValue,
    exp.LastValue,
    exp.Lag,
    exp.Lead,
)
_NUMBERS = frozenset({exp.DType.BIGINT, exp.DType.DECIMAL, exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.INT})
_YEAR_FIRST = re.compile(r"\d{4}\b.*", re.DOTALL)

_Typed = tuple[str, ColumnKind]  # name and kind of a column


def check_kinds(tree: exp.Query, tables: Mapping[str, QueryTable]) -> None:
    """Refuse calculations and comparisons that don't suit the kind of a column.

    Args:
        tree: query in which each column is qualified by its table.
        tables: readable tables by SQL name, in lower case.

    Raises:
        InvalidQueryError: the query uses text or dates as numbers, or compares a column with a value that it
            can't contain.
    """
    column_of = _Columns(tree, tables)
    for node in tree.walk():
        for operand in _operands(node):
            if (column := column_of(operand)) is not None and column[1] in ("text", "date"):
                raise _no_number(*column)
        for operand, value in _comparisons(node):
            if (column := column_of(operand)) is not None:
                _check_value(node, column, value)


class _Columns:
    """Lookup of the table column whose values an expression returns, also through subqueries."""

    def __init__(self, tree: exp.Query, tables: Mapping[str, QueryTable]) -> None:
        self._tables = tables
        self._sources = {
            id(column): source
            for scope in traverse_scope(tree)
            for column in scope.columns
            if (source := scope.sources.get(column.table)) is not None
        }
        self._known: dict[int, _Typed | None] = {}

    def __call__(self, node: exp.Expr | None) -> _Typed | None:
        """Return the name and kind of the column, or None if the expression calculates its values."""
        if isinstance(node, exp.Column):
            if id(node) not in self._known:
                self._known[id(node)] = None
                self._known[id(node)] = self._find(node)
            return self._known[id(node)]
        if isinstance(node, exp.Case | exp.If):
            branches = [one.args["true"] for one in node.args.get("ifs") or (node,)]
            return self._first([*branches, node.args.get("default") or node.args.get("false")])
        if isinstance(node, exp.Coalesce):
            return self._first([node.this, *node.expressions])
        return self(node.this) if isinstance(node, _SAME_KIND) else None

    def _find(self, column: exp.Column) -> _Typed | None:
        source = self._sources.get(id(column))
        if isinstance(source, Scope):
            return self._first(_selected(source.expression, column.name))
        table = self._tables.get(source.name.casefold()) if isinstance(source, exp.Table) else None
        if table is None:
            return None
        if column.name in table.hidden:
            return (column.name, "text") if column.name.endswith(RAW) else None
        kinds = dict(zip(table.columns, table.kinds, strict=False))
        return (column.name, kinds[column.name]) if column.name in kinds else None

    def _first(self, nodes: Sequence[exp.Expr | None]) -> _Typed | None:
        """Return the first column of text or dates among several expressions, or else the first column."""
        columns = [column for node in nodes if (column := self(node)) is not None]
        return min(columns, key=lambda column: column[1] not in ("text", "date"), default=None)


def _selected(query: exp.Expr, name: str) -> list[exp.Expr | None]:
    """Return the expressions of a column of a subquery: one for each part of a UNION."""
    query = query.unnest()
    if not isinstance(query, exp.Query) or name not in query.named_selects:
        return []
    position = query.named_selects.index(name)
    return [part.selects[position] for part in _parts(query) if position < len(part.selects)]


def _parts(query: exp.Expr) -> Iterator[exp.Select]:
    query = query.unnest()
    if isinstance(query, exp.SetOperation):
        yield from _parts(query.left)
        yield from _parts(query.right)
    elif isinstance(query, exp.Select):
        yield query


def _operands(node: exp.Expr) -> Iterator[exp.Expr | None]:
    """Yield the operands of a calculation, which must be numbers."""
    if isinstance(node, _CALCULATIONS):
        yield node.this
        yield node.args.get("expression")
    elif isinstance(node, exp.Anonymous) and node.name.casefold() == "total":
        yield from node.expressions
    elif isinstance(node, exp.Cast) and node.to.this in _NUMBERS and not isinstance(node.this, exp.Cast):
        yield node.this


def _comparisons(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield each operand of a comparison together with the value that it is compared with."""
    if isinstance(node, (*_ORDERINGS, *_EQUALITIES)):
        yield node.this, node.expression
        yield node.expression, node.this
    elif isinstance(node, exp.Between):
        yield node.this, node.args["low"]
        yield node.this, node.args["high"]
    elif isinstance(node, exp.In):
        yield from ((node.this, value) for value in node.expressions)


def _check_value(node: exp.Expr, column: _Typed, value: exp.Expr) -> None:
    """Refuse a literal that can't be compared with a column.

    Raises:
        InvalidQueryError: the comparison would have the same result for all rows.
    """
    name, kind = column
    value = value.unnest()
    if isinstance(value, exp.Neg):
        value = value.this
    if not isinstance(value, exp.Literal) or not value.name:
        return
    is_ordering = not isinstance(node, (*_EQUALITIES, exp.In))
    if kind == "text":
        if is_ordering and (not value.is_string or is_number(value.name)):
            raise _no_number(name, kind)
    elif kind == "date":
        if not value.is_string or not _YEAR_FIRST.fullmatch(value.name):
            raise _no_number(name, kind)
    elif value.is_string and not _is_plain(value.name):
        raise InvalidQueryError(
            f"The column {name!r} contains numbers, so no row has {value.name[:60]!r}.",
            f"Compare it with a number. If the file has such text, it is in {name}{RAW}.",
        )


def _is_plain(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _no_number(name: str, kind: ColumnKind) -> InvalidQueryError:
    if kind == "date":
        return InvalidQueryError(
            f"The column {name!r} contains dates as text, such as '2026-01-31', not numbers.",
            "Compare it with such a text. Days: julianday(a) - julianday(b); year: strftime('%Y', d).",
        )
    return InvalidQueryError(
        f"The column {name!r} contains text, so calculating with it or comparing it with a number would give "
        "a wrong result.",
        "Use a column of numbers, or return the rows instead of a calculation.",
    )
