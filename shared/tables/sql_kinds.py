"""Check that SQL calculates only with numbers, and compares columns with values of their kind. Runs in the
worker process.

SQLite would convert values silently: the average of the texts "1.234,5" and "n/a" is 0.617, the difference of
two dates is the difference of their years, and each text is more than each number.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from shared.platform.errors import InvalidQueryError
from shared.tables.cell_values import is_number as _is_amount
from shared.tables.models import RAW, ColumnKind
from shared.tables.queries import QueryTable

_CALCULATIONS = (
    exp.Sum, exp.Avg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Abs, exp.Round, exp.Ceil,
    exp.Floor, exp.Sqrt, exp.Ln, exp.Exp, exp.Pow, exp.Sign,
)  # fmt: skip
_ORDERINGS = (exp.GT, exp.GTE, exp.LT, exp.LTE)
_EQUALITIES = (exp.EQ, exp.NullSafeEQ)
_SAME_KIND = (
    exp.Paren, exp.Alias, exp.Collate, exp.Window, exp.Filter, exp.Min, exp.Max, exp.Nullif, exp.FirstValue,
    exp.LastValue, exp.Lag, exp.Lead, exp.Trim, exp.Upper, exp.Lower,
)  # fmt: skip
# Expressions that return numbers or text, whatever their operands are. SQLite doesn't convert such text when
# it is compared with a number.
_COUNTS = (exp.Count, exp.Length, exp.StrPosition, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile)
_NUMBER_NAMES = ("julianday", "unixepoch", "total")
_TEXTS = (
    exp.Substring, exp.TimeToStr, exp.Date, exp.TsOrDsToDate, exp.DPipe, exp.Trim, exp.Upper, exp.Lower,
)  # fmt: skip
_TEXT_NAMES = ("date", "datetime", "time", "strftime")
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
            if column_of.is_text(operand) and column_of.is_calculated(value):
                raise _no_text(operand)
            if (column := column_of(operand)) is not None:
                _check_value(node, column, value, is_number=column_of.is_number(value))


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
        self._texts: dict[int, bool] = {}

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
        if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
            return self._first([node.this, *node.expressions])
        if isinstance(node, exp.Distinct):
            return self._first(node.expressions)
        if isinstance(node, exp.Subquery):
            return self._first([part.selects[0] for part in _parts(node)])
        return self(node.this) if isinstance(node, _SAME_KIND) else None

    def is_number(self, node: exp.Expr) -> bool:
        """Return whether an expression certainly returns numbers."""
        if isinstance(node, exp.Cast):
            return node.to.this in _NUMBERS
        column = self(node)
        return self.is_calculated(node) if column is None else column[1] not in ("text", "date")

    def is_calculated(self, node: exp.Expr) -> bool:
        """Return whether an expression is a number that is neither read from a column nor cast. SQLite
        doesn't convert text that is compared with it.
        """
        if isinstance(node, exp.Literal):
            return not node.is_string
        if isinstance(node, exp.Subquery):
            return all(self.is_calculated(part.selects[0]) for part in _parts(node))
        if isinstance(node, exp.Paren | exp.Window | exp.Filter | exp.Alias):
            return self.is_calculated(node.this)
        is_named = isinstance(node, exp.Anonymous) and node.name.casefold() in _NUMBER_NAMES
        return is_named or isinstance(node, (*_CALCULATIONS, *_COUNTS))

    def is_text(self, node: exp.Expr) -> bool:
        """Return whether an expression returns calculated text, also through subqueries."""
        if isinstance(node, exp.Paren | exp.Alias | exp.Collate | exp.Min | exp.Max):
            return self.is_text(node.this)
        if isinstance(node, exp.Column) and isinstance(source := self._sources.get(id(node)), Scope):
            if id(node) not in self._texts:
                self._texts[id(node)] = False
                selected = [one for one in _selected(source.expression, node.name) if one is not None]
                self._texts[id(node)] = bool(selected) and all(map(self.is_text, selected))
            return self._texts[id(node)]
        is_named = isinstance(node, exp.Anonymous) and node.name.casefold() in _TEXT_NAMES
        return is_named or isinstance(node, _TEXTS)

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
        """Return the first column of text or dates among several expressions, or else the first column. None
        if a literal among them doesn't fit a column of dates or numbers.
        """
        columns = [column for node in nodes if (column := self(node)) is not None]
        first = min(columns, key=lambda column: column[1] not in ("text", "date"), default=None)
        texts = [node.name for node in nodes if isinstance(node, exp.Literal) and node.is_string]
        if first is None or first[1] == "text":
            return first
        fits = _YEAR_FIRST.fullmatch if first[1] == "date" else _is_plain
        return first if all(map(fits, texts)) else None


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
        yield from _paired(node.this, node.expression)
        yield from _paired(node.expression, node.this)
    elif isinstance(node, exp.Between):
        for value in (node.args["low"], node.args["high"]):
            yield from _paired(node.this, value)
            yield from _paired(value, node.this)
    elif isinstance(node, exp.In):
        for value in node.expressions:
            yield from _paired(node.this, value)


def _paired(operand: exp.Expr, value: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    if isinstance(operand, exp.Tuple) and isinstance(value, exp.Tuple):
        yield from zip(operand.expressions, value.expressions, strict=False)
    else:
        yield operand, value


def _check_value(node: exp.Expr, column: _Typed, value: exp.Expr, *, is_number: bool) -> None:
    """Refuse a value that can't be compared with a column.

    Raises:
        InvalidQueryError: the comparison would have the same result for all rows.
    """
    name, kind = column
    is_ordering = not isinstance(node, (*_EQUALITIES, exp.In))
    if is_number and (kind == "date" or (kind == "text" and is_ordering)):
        raise _no_number(name, kind)
    value = value.unnest()
    if not isinstance(value, exp.Literal) or not value.name:
        return
    if kind == "text":
        if is_ordering and _is_amount(value.name):
            raise _no_number(name, kind)
    elif kind == "date":
        if not _YEAR_FIRST.fullmatch(value.name):
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


def _no_text(operand: exp.Expr) -> InvalidQueryError:
    return InvalidQueryError(
        f"{operand.sql('sqlite')[:60]} returns text, so comparing it with a number has the same result for "
        "all rows.",
        "Compare it with a text such as '2026', or convert it: CAST(... AS INTEGER).",
    )


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
