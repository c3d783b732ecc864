"""Compiler from `$filter` syntax trees to parametrised SQL. Unsupported nodes are 400 errors, never ignored.

As in the service, comparing a missing value is false rather than NULL, so its negation is true.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from odata_query import ast

from local.search_server import edm
from local.search_server.errors import RequestError
from local.search_server.filter_terms import (
    DEFAULT_DELIMITERS,
    ELEMENT,
    Node,
    Operand,
    Sql,
    compare,
    is_one_of,
    literal_value,
    parse_filter,
    path_of,
    qualified_name,
    split_values,
    string_arguments,
    unsupported,
)
from local.search_server.schema import Field, Schema

if TYPE_CHECKING:
    from local.search_server.edm import SqlValue

MAX_VALUES: Final = 30_000  # SQLite accepts at most 32,766 bound parameters per statement

_OPERATORS: Final[dict[type[Node], str]] = {
    ast.Eq: "IS",
    ast.NotEq: "IS NOT",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_MIRRORED: Final[dict[type[Node], type[Node]]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}


@dataclass(frozen=True)
class _Scope:
    """The fields and variables visible at a node. Inside a lambda, only its range variable is visible."""

    schema: Schema
    variable: str | None = None
    collection: Field | None = None


def compile_filter(schema: Schema, text: str) -> Sql:
    """Return an SQL query for the slots of the documents that pass the filter.

    Raises:
        RequestError: 400, for invalid or unsupported syntax, an unknown or unfilterable field, or mismatched
        types.
    """
    try:
        condition = _boolean(parse_filter(text), _Scope(schema))
    except RecursionError:
        raise RequestError("Invalid expression: the filter is nested too deeply.") from None
    if len(condition.values) > MAX_VALUES:
        raise RequestError(f"Invalid expression: the filter contains more than {MAX_VALUES} values.")
    return Sql(f"SELECT columns.slot FROM columns WHERE {condition.text}", condition.values)  # noqa: S608 - bound values


def _boolean(node: Node, scope: _Scope) -> Sql:
    compile_node = _COMPILERS.get(type(node))
    if compile_node is None:
        raise unsupported(node)
    return compile_node(node, scope)


def _negation(node: ast.UnaryOp, scope: _Scope) -> Sql:
    if not isinstance(node.op, ast.Not):
        raise unsupported(node.op)
    inner = _boolean(node.operand, scope)
    return Sql(f"(NOT {inner.text})", inner.values)


def _constant(node: ast.Boolean, scope: _Scope) -> Sql:
    return Sql("1" if node.py_val else "0")


def _junction(node: ast.BoolOp, scope: _Scope) -> Sql:
    """Compile a chain of `and` or `or` to SQL, as a balanced tree because SQLite rejects expressions nested
    deeper than 1000.
    """
    operator = type(node.op)
    if operator not in (ast.And, ast.Or):
        raise unsupported(node.op)
    operands = _chain(node, operator)
    if operator is ast.Or:
        parts, word = _merge_equalities(operands, scope), " OR "
    else:
        parts, word = [_boolean(one, scope) for one in operands], " AND "
    while len(parts) > 1:
        pairs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
        parts = [_join(pair, word) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


def _join(pair: list[Sql], word: str) -> Sql:
    left, right = pair
    return Sql(f"({left.text}{word}{right.text})", left.values + right.values)


def _chain(node: Node, operator: type[Node]) -> list[Node]:
    """Return the operands of a chain such as `a or b or c`, left to right. Not recursive, because chains can
    be long.
    """
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
    """Compile the operands of an `or`. Equality tests of the same field become one IN, which SQLite answers
    from an index.
    """
    parts: list[Sql] = []
    groups: dict[str, list[SqlValue]] = {}
    for node in operands:
        if isinstance(node, ast.Compare) and isinstance(node.comparator, ast.Eq) and not _has_null(node):
            operand, literal, _ = _sides(node, scope)
            groups.setdefault(operand.sql, []).append(literal_value(operand, literal))
        else:
            parts.append(_boolean(node, scope))
    return parts + [is_one_of(column, values) for column, values in groups.items()]


def _has_null(node: ast.Compare) -> bool:
    return isinstance(node.left, ast.Null) or isinstance(node.right, ast.Null)


def _comparison(node: ast.Compare, scope: _Scope) -> Sql:
    operand, literal, comparator = _sides(node, scope)
    operator = _OPERATORS.get(comparator)
    if operator is None:
        raise unsupported(node.comparator)
    equality = comparator in (ast.Eq, ast.NotEq)
    if isinstance(literal, ast.Null):
        if not equality:
            raise RequestError("Invalid expression: null can only be compared with 'eq' or 'ne'.")
        return compare(operand, operator, None)
    if operand.type == edm.BOOLEAN and not equality:
        raise RequestError(f"Invalid expression: '{operand.name}' is {edm.BOOLEAN}; use 'eq' or 'ne'.")
    return compare(operand, operator, literal_value(operand, literal))


def _sides(node: ast.Compare, scope: _Scope) -> tuple[Operand, Node, type[Node]]:
    """Return (field, literal, comparator) of a comparison, mirrored if the literal is on the left."""
    comparator = type(node.comparator)
    left_literal, right_literal = (isinstance(side, ast._Literal) for side in (node.left, node.right))
    if left_literal == right_literal:
        raise RequestError(
            "Invalid expression: a comparison needs a field on one side and a constant on the other."
        )
    if left_literal:
        return _operand(node.right, scope), node.left, _MIRRORED.get(comparator, comparator)
    return _operand(node.left, scope), node.right, comparator


def _operand(node: Node, scope: _Scope) -> Operand:
    if scope.variable is not None and scope.collection is not None:
        if isinstance(node, ast.Identifier) and qualified_name(node) == scope.variable:
            return Operand(ELEMENT, scope.collection.element_type or "", scope.variable)
        raise RequestError(
            f"Invalid expression: only the range variable '{scope.variable}' may be used inside this lambda."
        )
    field = _filterable(path_of(node), scope)
    if not field.has_column:
        raise RequestError(
            f"Invalid expression: '{field.path}' of type '{field.type}' cannot be compared with a constant."
        )
    return Operand(f"columns.{field.column}", field.type, field.path)


def _filterable(path: str, scope: _Scope) -> Field:
    field = scope.schema.field(path, "$filter")
    if not field.definition.filterable:
        raise RequestError(f"Invalid expression: '{path}' is not a filterable field.")
    return field


def _bare_boolean(node: Node, scope: _Scope) -> Sql:
    operand = _operand(node, scope)
    if operand.type != edm.BOOLEAN:
        raise RequestError(f"Invalid expression: '{operand.name}' is '{operand.type}', not {edm.BOOLEAN}.")
    return Sql(f"ifnull({operand.sql}, 0)")


def _call(node: ast.Call, scope: _Scope) -> Sql:
    name = qualified_name(node.func)
    if name == "search.in":
        return _search_in(node.args, scope)
    raise RequestError(f"Invalid expression: the local search server does not support '{name}' in $filter.")


def _search_in(arguments: Sequence[Node], scope: _Scope) -> Sql:
    if len(arguments) not in (2, 3):
        raise RequestError(
            "Invalid expression: search.in takes a field, a string of values and optional delimiters."
        )
    operand = _operand(arguments[0], scope)
    if operand.type != edm.STRING:
        raise RequestError(
            f"Invalid expression: search.in needs a string field, but '{operand.name}' is '{operand.type}'."
        )
    listed, *delimiters = string_arguments(arguments[1:], "search.in")
    values = split_values(listed, delimiters[0] if delimiters else DEFAULT_DELIMITERS)
    return is_one_of(operand.sql, [edm.canonical_text(value, "search.in") for value in values])


def _lambda(node: ast.CollectionLambda, scope: _Scope) -> Sql:
    if scope.variable is not None:
        raise RequestError(
            "Invalid expression: nested lambda expressions are not supported by the local search server."
        )
    field = _filterable(path_of(node.owner), scope)
    if not field.has_elements:
        raise RequestError(
            f"Invalid expression: any/all cannot be applied to '{field.path}' of type '{field.type}'."
        )
    universal = isinstance(node.operator, ast.All)
    if not universal and not isinstance(node.operator, ast.Any):
        raise unsupported(node.operator)
    if node.lambda_ is None:
        return _slots_with(field, Sql("1"), negated=False)
    inner = replace(scope, variable=qualified_name(node.lambda_.identifier), collection=field)
    if field.element_type == edm.STRING:
        _check_string_lambda(node.lambda_.expression, universal=universal)
    body = _boolean(node.lambda_.expression, inner)
    if universal:
        return _slots_with(field, Sql(f"(NOT {body.text})", body.values), negated=True)
    return _slots_with(field, body, negated=False)


def _slots_with(field: Field, condition: Sql, *, negated: bool) -> Sql:
    """Return a condition that is true for documents with an element that satisfies `condition` or, with
    `negated`, for documents without such an element.
    """
    word = "NOT IN" if negated else "IN"
    chosen = f"SELECT elements.slot FROM elements WHERE elements.field = ? AND {condition.text}"  # noqa: S608 - bound values
    return Sql(f"(columns.slot {word} ({chosen}))", (field.number, *condition.values))


def _check_string_lambda(body: Node, *, universal: bool) -> None:
    """Raise an error if the service would reject this lambda over strings. `any` allows `eq` and search.in
    joined by `or`; `all` allows their negations joined by `and`.

    Filters that pass here must pass in the service. Source: "Troubleshooting OData collection filters in
    Azure AI Search".
    """
    operator, comparator = (ast.And, ast.NotEq) if universal else (ast.Or, ast.Eq)
    for node in _chain(body, operator):
        is_negation = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        plain = node.operand if isinstance(node, ast.UnaryOp) and is_negation else node
        is_call = isinstance(plain, ast.Call) and is_negation == universal
        is_comparison = isinstance(node, ast.Compare) and isinstance(node.comparator, comparator)
        if not is_call and not is_comparison:
            allowed = (
                "'ne' or 'not search.in' joined by 'and'"
                if universal
                else "'eq' or 'search.in' joined by 'or'"
            )
            raise RequestError(
                f"Invalid expression: a lambda over a collection of strings may only contain {allowed}."
            )


# This table contains all supported syntax. Nodes that are missing from it are rejected.
_COMPILERS: Final[dict[type[Node], Callable[..., Sql]]] = {
    ast.BoolOp: _junction,
    ast.UnaryOp: _negation,
    ast.Compare: _comparison,
    ast.Boolean: _constant,
    ast.Call: _call,
    ast.CollectionLambda: _lambda,
    ast.Identifier: _bare_boolean,
    ast.Attribute: _bare_boolean,
}
