"""The leaves of a `$filter`: operands, literals and elementary SQL conditions.

Conditions are 0 or 1, never NULL. Values are bound as parameters, so SQL text contains only our own column
names and operators.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from odata_query import ast
from odata_query.exceptions import ODataException
from odata_query.grammar import ODataLexer, ODataParser

from local.search_server import edm
from local.search_server.edm import SqlValue
from local.search_server.errors import RequestError

Node = ast._Node
# Unmeasured; the service limits only the size of the whole request, to 16 MB.
MAX_FILTER_CHARS: Final = 1_000_000


def _pattern(rule: Callable[..., Any], pattern: str) -> Callable[..., Any]:
    """Return a copy of a lexer rule with a different pattern."""

    def bounded(lexer: object, token: object) -> object:
        return rule(lexer, token)

    bounded.pattern = pattern  # type: ignore[attr-defined]
    return bounded


class FilterLexer(ODataLexer):
    """A lexer whose keywords end at word boundaries. ODataLexer would read the name `allowed` as `all` and
    `owed`.
    """

    tokens = ODataLexer.tokens
    ANY = _pattern(ODataLexer.ANY, r"any(?!\w)")
    ALL = _pattern(ODataLexer.ALL, r"all(?!\w)")
    NULL = _pattern(ODataLexer.NULL, r"null(?!\w)")
    BOOLEAN = _pattern(ODataLexer.BOOLEAN, r"(?:true|false)(?!\w)")
    # `not(…)` without a space is valid OData.
    NOT = _pattern(ODataLexer.NOT, r"not(?:\s+|(?=\())")


def parse_filter(text: str) -> Node:
    """Parse a `$filter` and return its syntax tree.

    Raises:
        RequestError: 400, if the syntax is invalid.
    """
    if len(text) > MAX_FILTER_CHARS:
        raise RequestError(f"The filter is longer than {MAX_FILTER_CHARS} characters.")
    try:
        tree = ODataParser().parse(FilterLexer().tokenize(text.strip()))
    except (ODataException, ValueError, RecursionError, NotImplementedError, AttributeError) as error:
        raise RequestError(
            f"Invalid expression: Syntax error in $filter. {type(error).__name__}: {error}"
        ) from error
    if not isinstance(tree, Node):
        raise RequestError("Invalid expression: Syntax error in $filter.")
    return tree


ELEMENT: Final = "elements.value"
DEFAULT_DELIMITERS: Final = " ,"
_LITERALS: Final[dict[str, tuple[type[Node], ...]]] = {
    edm.STRING: (ast.String,),
    edm.BOOLEAN: (ast.Boolean,),
    edm.INT32: (ast.Integer, ast.Float),
    edm.INT64: (ast.Integer, ast.Float),
    edm.DOUBLE: (ast.Integer, ast.Float),
    edm.DATE: (ast.DateTime,),
}


@dataclass(frozen=True)
class Sql:
    """An SQL condition with its bound values. Its value is 0 or 1, never NULL."""

    text: str
    values: tuple[SqlValue, ...] = ()


@dataclass(frozen=True)
class Operand:
    """The left side of a comparison: a column, or the current element of a lambda."""

    sql: str
    type: str
    name: str


def compare(operand: Operand, operator: str, value: SqlValue) -> Sql:
    """Return the SQL comparison of an operand and a value. `IS` and `IS NOT` treat NULL as a value; all other
    operators are false for NULL.
    """
    condition = f"{operand.sql} {operator} ?"
    return Sql(
        f"({condition})" if operator.startswith("IS") else _never_null(operand.sql, condition), (value,)
    )


def is_one_of(column: str, values: Sequence[SqlValue]) -> Sql:
    if not values:
        return Sql("0")
    marks = ", ".join("?" * len(values))
    return Sql(_never_null(column, f"{column} IN ({marks})"), tuple(values))


def literal_value(operand: Operand, literal: Node) -> SqlValue:
    """Return a literal as an SQL value of the operand's type.

    Raises:
        RequestError: 400, if the literal has a different type or is out of range.
    """
    if isinstance(literal, _LITERALS.get(operand.type, ())):
        match literal:
            case ast.Integer() | ast.Float():
                return _number(literal)
            case ast.String():
                return edm.canonical_text(literal.py_val, operand.name)
            case ast.DateTime():
                return _instant(literal.val, operand)
            case ast.Boolean():
                return int(literal.py_val)
    raise RequestError(
        "Invalid expression: A binary operator with incompatible types was detected: the type of"
        f" '{operand.name}' is '{operand.type}', the literal is {type(literal).__name__}."
    )


def split_values(listed: str, delimiters: str) -> list[str]:
    """Split the value list of search.in. Empty values are dropped, because an empty principal must never
    match.

    Raises:
        RequestError: 400, if there is no delimiter.
    """
    if not delimiters:
        raise RequestError("Invalid expression: search.in needs at least one delimiter.")
    for delimiter in delimiters[1:]:
        listed = listed.replace(delimiter, delimiters[0])
    return list(dict.fromkeys(value for value in listed.split(delimiters[0]) if value))


def path_of(node: Node) -> str:
    """Return the path that a field reference names, such as `address/city`."""
    match node:
        case ast.Identifier(name=str() as name, namespace=()):
            return name
        case ast.Attribute(owner=owner, attr=str() as attr):
            return f"{path_of(owner)}/{attr}"
        case _:
            raise unsupported(node)


def qualified_name(identifier: ast.Identifier) -> str:
    return ".".join((*identifier.namespace, identifier.name))


def string_arguments(arguments: Sequence[Node], function: str) -> list[str]:
    strings = [argument.val for argument in arguments if isinstance(argument, ast.String)]
    if len(strings) != len(arguments):
        raise RequestError(f"Invalid expression: the arguments of {function} must be string constants.")
    return strings


def unsupported(node: Node) -> RequestError:
    return RequestError(f"Invalid expression: {type(node).__name__} is not supported in $filter.")


def _never_null(operand: str, condition: str) -> str:
    """Return a condition that is false instead of NULL. Elements are never NULL; without ifnull, SQLite can
    use their index.
    """
    return f"({condition})" if operand == ELEMENT else f"ifnull({condition}, 0)"


def _number(literal: ast.Integer | ast.Float) -> SqlValue:
    try:
        if isinstance(literal, ast.Float):
            return float(str(edm.canonical_scalar(edm.DOUBLE, literal.py_val, "$filter")))
        number = int(literal.py_val)
    except ValueError:
        # Python refuses to parse integers with this many digits, so treat the value as out of range
        number = edm.MAX_INT64 + 1
    if abs(number) > edm.MAX_INT64:
        raise RequestError("Invalid expression: the number is out of range.")
    return number


def _instant(text: str, operand: Operand) -> int:
    try:
        return edm.microseconds(edm.parse_date(text.upper()))
    except ValueError as error:
        raise RequestError(
            f"Invalid expression: '{operand.name}' must be compared with a valid date. {error}"
        ) from error
