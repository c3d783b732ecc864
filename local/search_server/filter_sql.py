"""A `$filter` tree to parametrised SQL over `columns` and `elements`. An unknown node is a 400, never left out.

Logic has two values, as in the service: a comparison with an absent value is false, so its negation is true.
Every value is bound as a parameter; the SQL text holds only our own column names and operators.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from odata_query import ast

from local.search_server import edm
from local.search_server.edm import SqlValue
from local.search_server.errors import RequestError
from local.search_server.filter_syntax import Node, parse_filter
from local.search_server.schema import Field, Schema

MAX_VALUES: Final = 30_000  # SQLite takes 32,766 bound parameters in one statement
DEFAULT_DELIMITERS: Final = " ,"
_ELEMENT: Final = "elements.value"

_OPERATORS: Final[dict[type, str]] = {
    ast.Eq: "IS",
    ast.NotEq: "IS NOT",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_MIRRORED: Final[dict[type, type]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_LITERALS: Final[dict[str, tuple[type, ...]]] = {
    edm.STRING: (ast.String,),
    edm.BOOLEAN: (ast.Boolean,),
    edm.INT32: (ast.Integer, ast.Float),
    edm.INT64: (ast.Integer, ast.Float),
    edm.DOUBLE: (ast.Integer, ast.Float),
    edm.DATE: (ast.DateTime,),
}

TextMatch = Callable[[list[str]], Sequence[int]]


@dataclass(frozen=True)
class Sql:
    """A boolean expression that is 0 or 1 and never NULL, with the values for its question marks."""

    text: str
    values: tuple[SqlValue, ...] = ()


@dataclass(frozen=True)
class _Scope:
    """What names mean at this point of the tree."""

    schema: Schema
    text_match: TextMatch
    variable: str | None = None
    collection: Field | None = None


@dataclass(frozen=True)
class _Operand:
    sql: str
    type: str
    name: str


def compile_filter(schema: Schema, text: str, text_match: TextMatch) -> Sql:
    """SQL that selects the slots of `columns` that pass the filter.

    `text_match` answers search.ismatch: it gets the function's string arguments and returns the matching slots.

    Raises:
        RequestError: 400, not a filter, an unknown or unfilterable field, types that do not fit, or anything
            that this compiler does not know.
    """
    try:
        condition = _boolean(parse_filter(text), _Scope(schema, text_match))
    except RecursionError:
        raise RequestError("Invalid expression: the filter is nested too deeply.") from None
    if len(condition.values) > MAX_VALUES:
        raise RequestError(f"Invalid expression: the filter holds more than {MAX_VALUES} values.")
    return Sql(f"SELECT columns.slot FROM columns WHERE {condition.text}", condition.values)  # noqa: S608 - see above


def _boolean(node: Node, scope: _Scope) -> Sql:
    match node:
        case ast.BoolOp():
            return _junction(node, scope)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _boolean(operand, scope)
            return Sql(f"(NOT {inner.text})", inner.values)
        case ast.Compare():
            return _comparison(node, scope)
        case ast.Boolean(val=_):
            return Sql("1" if node.py_val else "0")
        case ast.Call():
            return _call(node, scope)
        case ast.CollectionLambda():
            return _lambda(node, scope)
        case ast.Identifier() | ast.Attribute():
            return _bare_boolean(node, scope)
        case _:
            raise _unsupported(node)


def _junction(node: Node, scope: _Scope) -> Sql:
    """A chain of one operator as a balanced tree: SQLite refuses expressions deeper than 1000."""
    operator = type(node.op)
    if operator not in (ast.And, ast.Or):
        raise _unsupported(node.op)
    operands = _chain(node, operator)
    parts = (
        _merge_equalities(operands, scope)
        if operator is ast.Or
        else [_boolean(one, scope) for one in operands]
    )
    word = " AND " if operator is ast.And else " OR "
    while len(parts) > 1:
        pairs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
        parts = [_joined(pair, word) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


def _joined(pair: list[Sql], word: str) -> Sql:
    left, right = pair
    return Sql(f"({left.text}{word}{right.text})", left.values + right.values)


def _chain(node: Node, operator: type) -> list[Node]:
    """The operands of `a or b or c`, left to right, without recursion: such chains get long."""
    operands: list[Node] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, ast.BoolOp) and type(current.op) is operator:
            pending += [current.right, current.left]
        else:
            operands.append(current)
    return operands


def _merge_equalities(operands: list[Node], scope: _Scope) -> list[Sql]:
    """`x eq 1 or x eq 2 or …` becomes one IN, which SQLite answers from its index."""
    parts: list[Sql] = []
    groups: dict[str, list[SqlValue]] = {}
    for node in operands:
        if isinstance(node, ast.Compare) and isinstance(node.comparator, ast.Eq) and not _has_null(node):
            operand, literal, _ = _sides(node, scope)
            groups.setdefault(operand.sql, []).append(_value(operand, literal))
        else:
            parts.append(_boolean(node, scope))
    return parts + [_in(sql, values) for sql, values in groups.items()]


def _in(sql: str, values: Sequence[SqlValue]) -> Sql:
    if not values:
        return Sql("0")
    marks = ", ".join("?" * len(values))
    return Sql(_never_null(sql, f"{sql} IN ({marks})"), tuple(values))


def _never_null(operand: str, condition: str) -> str:
    """Elements are never NULL, and without ifnull SQLite answers from their index."""
    return f"({condition})" if operand == _ELEMENT else f"ifnull({condition}, 0)"


def _has_null(node: Node) -> bool:
    return isinstance(node.left, ast.Null) or isinstance(node.right, ast.Null)


def _comparison(node: Node, scope: _Scope) -> Sql:
    operand, literal, comparator = _sides(node, scope)
    operator = _OPERATORS.get(comparator)
    if operator is None:
        raise _unsupported(node.comparator)
    equality = comparator in (ast.Eq, ast.NotEq)
    if isinstance(literal, ast.Null):
        if not equality:
            raise RequestError("Invalid expression: null can only be compared with 'eq' and 'ne'.")
        return Sql(f"({operand.sql} {operator} NULL)")
    if operand.type == edm.BOOLEAN and not equality:
        raise RequestError(f"Invalid expression: '{operand.name}' is {edm.BOOLEAN}; use 'eq' or 'ne'.")
    value = _value(operand, literal)
    if equality:
        return Sql(f"({operand.sql} {operator} ?)", (value,))
    return Sql(_never_null(operand.sql, f"{operand.sql} {operator} ?"), (value,))


def _sides(node: Node, scope: _Scope) -> tuple[_Operand, Node, type]:
    """Field, literal and the comparator as if the field stood on the left."""
    comparator = type(node.comparator)
    left_literal, right_literal = (isinstance(side, ast._Literal) for side in (node.left, node.right))
    if left_literal == right_literal:
        raise RequestError(
            "Invalid expression: a comparison needs a field on one side and a constant on the other."
        )
    if left_literal:
        return _operand(node.right, scope), node.left, _MIRRORED.get(comparator, comparator)
    return _operand(node.left, scope), node.right, comparator


def _operand(node: Node, scope: _Scope) -> _Operand:
    if (
        isinstance(node, ast.Identifier)
        and not node.namespace
        and node.name == scope.variable
        and scope.collection
    ):
        return _Operand(_ELEMENT, scope.collection.element_type or "", node.name)
    if scope.variable is not None:
        raise RequestError(
            f"Invalid expression: only the range variable '{scope.variable}' may be used inside this lambda."
        )
    field = _filterable(_path(node), scope)
    if not field.has_column:
        raise RequestError(
            f"Invalid expression: '{field.path}' of type '{field.type}' cannot be compared here."
        )
    return _Operand(f"columns.{field.column}", field.type, field.path)


def _filterable(path: str, scope: _Scope) -> Field:
    field = scope.schema.field(path, "$filter")
    if not field.definition.filterable:
        raise RequestError(f"Invalid expression: '{path}' is not a filterable field.")
    return field


def _path(node: Node) -> str:
    match node:
        case ast.Identifier(name=str() as name, namespace=()):
            return name
        case ast.Attribute(owner=owner, attr=str() as attr):
            return f"{_path(owner)}/{attr}"
        case _:
            raise _unsupported(node)


def _value(operand: _Operand, literal: Node) -> SqlValue:
    """The literal as SQL value of the operand's type."""
    if not isinstance(literal, _LITERALS.get(operand.type, ())):
        raise RequestError(
            "Invalid expression: A binary operator with incompatible types was detected: the type of"
            f" '{operand.name}' is '{operand.type}', the literal is {type(literal).__name__}."
        )
    if isinstance(literal, ast.Integer | ast.Float):
        return _number(literal)
    if operand.type == edm.STRING:
        return str(edm.canonical_scalar(edm.STRING, literal.py_val, operand.name))
    if operand.type == edm.DATE:
        return _instant(literal.val, operand)
    return int(literal.py_val)


def _number(literal: Node) -> SqlValue:
    try:
        if isinstance(literal, ast.Integer):
            number = int(literal.py_val)
            if abs(number) > edm.MAX_INT64:
                raise OverflowError
            return number
        return float(str(edm.canonical_scalar(edm.DOUBLE, literal.py_val, "$filter")))
    except (OverflowError, ValueError):
        raise RequestError("Invalid expression: the number is out of range.") from None


def _instant(text: str, operand: _Operand) -> int:
    try:
        return edm.microseconds(edm.parse_date(text.upper()))
    except ValueError as error:
        raise RequestError(
            f"Invalid expression: '{operand.name}' is compared with no valid date. {error}"
        ) from error


def _bare_boolean(node: Node, scope: _Scope) -> Sql:
    operand = _operand(node, scope)
    if operand.type != edm.BOOLEAN:
        raise RequestError(f"Invalid expression: '{operand.name}' is '{operand.type}', not {edm.BOOLEAN}.")
    return Sql(f"ifnull({operand.sql}, 0)")


def _call(node: Node, scope: _Scope) -> Sql:
    name = node.func.full_name()
    if name == "search.in":
        return _search_in(node.args, scope)
    if name == "search.ismatch" and scope.variable is None:
        slots = scope.text_match(_strings(node.args, name))
        if len(slots) > MAX_VALUES:
            # Larger matches than parameters allow travel as text; slots are integers, so nothing can be injected.
            return Sql(f"(columns.slot IN ({','.join(str(int(slot)) for slot in slots)}))")
        return _in("columns.slot", slots)
    raise RequestError(f"Invalid expression: the function '{name}' is not supported in $filter here.")


def _search_in(arguments: list[Node], scope: _Scope) -> Sql:
    if len(arguments) not in (2, 3):
        raise RequestError(
            "Invalid expression: search.in takes a field, a list of values, and maybe delimiters."
        )
    operand = _operand(arguments[0], scope)
    if operand.type != edm.STRING:
        raise RequestError(
            f"Invalid expression: search.in needs a string field, '{operand.name}' is not one."
        )
    listed, *rest = _strings(arguments[1:], "search.in")
    delimiters = rest[0] if rest else DEFAULT_DELIMITERS
    if not delimiters:
        raise RequestError("Invalid expression: search.in needs at least one delimiter.")
    for delimiter in delimiters[1:]:
        listed = listed.replace(delimiter, delimiters[0])
    values = dict.fromkeys(value for value in listed.split(delimiters[0]) if value)
    return _in(operand.sql, [str(edm.canonical_scalar(edm.STRING, value, "search.in")) for value in values])


def _strings(arguments: list[Node], function: str) -> list[str]:
    if not all(isinstance(argument, ast.String) for argument in arguments):
        raise RequestError(f"Invalid expression: {function} takes string constants here.")
    return [str(argument.val) for argument in arguments]


def _lambda(node: Node, scope: _Scope) -> Sql:
    if scope.variable is not None:
        raise RequestError("Invalid expression: a lambda inside a lambda is not supported here.")
    field = _filterable(_path(node.owner), scope)
    if not field.has_elements:
        raise RequestError(
            f"Invalid expression: any/all are not supported for '{field.path}' of type '{field.type}'."
        )
    universal = isinstance(node.operator, ast.All)
    if not universal and not isinstance(node.operator, ast.Any):
        raise _unsupported(node.operator)
    if node.lambda_ is None:
        return _slots_with(field, Sql("1"), negated=False)
    inner = replace(scope, variable=node.lambda_.identifier.full_name(), collection=field)
    if field.element_type == edm.STRING:
        check_string_lambda(node.lambda_.expression, universal=universal)
    body = _boolean(node.lambda_.expression, inner)
    if universal:
        return _slots_with(field, Sql(f"(NOT {body.text})", body.values), negated=True)
    return _slots_with(field, body, negated=False)


def _slots_with(field: Field, condition: Sql, *, negated: bool) -> Sql:
    """Documents that have (or have not) an element for which the condition holds."""
    word = "NOT IN" if negated else "IN"
    text = f"(columns.slot {word} (SELECT elements.slot FROM elements WHERE elements.field = ? AND {condition.text}))"  # noqa: S608 - see module
    return Sql(text, (field.number, *condition.values))


def check_string_lambda(body: Node, *, universal: bool) -> None:
    """Collections of strings allow only `eq` and search.in joined by `or` under any, their negations and `and` under all.

    Source: "Troubleshooting OData collection filters in Azure AI Search". A filter that passes here must pass there.
    """
    operator, comparator = (ast.And, ast.NotEq) if universal else (ast.Or, ast.Eq)
    for node in _chain(body, operator):
        plain = node
        if universal and isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            plain = node.operand
        is_call = isinstance(plain, ast.Call) and (plain is not node) == universal
        is_comparison = isinstance(node, ast.Compare) and isinstance(node.comparator, comparator)
        if not is_call and not is_comparison:
            wanted = (
                "'ne' or 'not search.in' joined by 'and'"
                if universal
                else "'eq' or 'search.in' joined by 'or'"
            )
            raise RequestError(
                f"Invalid expression: over a collection of strings a lambda may only hold {wanted}."
            )


def _unsupported(node: Node) -> RequestError:
    return RequestError(f"Invalid expression: {type(node).__name__} is not supported in $filter.")
