"""Random filters, each with an equivalent Python predicate, and documents with difficult values.

The predicates never see the filter's text and share no code with the server.
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

Document = dict[str, Any]
Predicate = Callable[[Document], bool]

STRINGS = (
    "", " ", "a", "A", "b", "alpha", "any", "null", "true", "o'neill", "''",
    "' or 1 eq 1 or name eq '",
    "'); DROP TABLE documents; --", "%", "_", "a,b", "a b", "a|b", "*", "ünïcödé", "東京", "🙂", "\\", "\"",
    "?",
    "line\nbreak",
    "tab\there", "x" * 300, "u123", "engineering", "org:7", "ENGINEERING",
)  # fmt: skip
INTEGERS = (-(2**31), -7, -1, 0, 1, 2, 3, 5, 2**31 - 1)
DOUBLES = (-1.5, -0.0, 0.0, 0.1, 0.25, 2.0, 3.75, 1e10, 1e-7)
START = datetime(2024, 2, 28, 22, 30, tzinfo=UTC)

FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "Edm.String", "key": True},
    {"name": "name", "type": "Edm.String", "searchable": False},
    {"name": "nullable_name", "type": "Edm.String", "searchable": False},
    {"name": "rating", "type": "Edm.Int32"},
    {"name": "views", "type": "Edm.Int64"},
    {"name": "price", "type": "Edm.Double"},
    {"name": "active", "type": "Edm.Boolean"},
    {"name": "created", "type": "Edm.DateTimeOffset"},
    {"name": "allowed", "type": "Collection(Edm.String)", "searchable": False},
    {"name": "anyone", "type": "Collection(Edm.String)", "searchable": False},
    {"name": "numbers", "type": "Collection(Edm.Int32)"},
]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda one, other: one == other,
    "ne": lambda one, other: one != other,
    "lt": lambda one, other: one < other,
    "le": lambda one, other: one <= other,
    "gt": lambda one, other: one > other,
    "ge": lambda one, other: one >= other,
}
_MIRROR = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


@dataclass(frozen=True)
class Case:
    text: str
    predicate: Predicate


def make_documents(chance: random.Random, count: int) -> list[Document]:
    return [_document(chance, number) for number in range(count)]


def make_case(chance: random.Random, depth: int = 3) -> Case:
    """Return a filter of at most 2 ** depth comparisons."""
    kind = chance.random()
    if depth > 0 and kind < 0.25:
        return _junction("and", make_case(chance, depth - 1), make_case(chance, depth - 1))
    if depth > 0 and kind < 0.5:
        return _junction("or", make_case(chance, depth - 1), make_case(chance, depth - 1))
    if depth > 0 and kind < 0.6:
        inner = make_case(chance, depth - 1)
        space = chance.choice(["", " "])
        return Case(f"not{space}({inner.text})", lambda document: not inner.predicate(document))
    return chance.choice(_LEAVES)(chance)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _document(chance: random.Random, number: int) -> Document:
    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.25 else value

    moment = START + timedelta(minutes=chance.randrange(0, 200))
    return {
        "id": str(number),
        "name": chance.choice(STRINGS),
        "nullable_name": maybe(chance.choice(STRINGS)),
        "rating": maybe(chance.choice(INTEGERS)),
        "views": maybe(chance.choice((*INTEGERS, 2**53 + 1, -(2**63), 2**63 - 1))),
        "price": maybe(chance.choice(DOUBLES)),
        "active": maybe(chance.random() < 0.5),
        "created": maybe(moment.isoformat()),
        "allowed": chance.choices(STRINGS, k=chance.randrange(0, 4)),
        "anyone": chance.choices(STRINGS, k=chance.randrange(0, 3)),
        "numbers": chance.choices(INTEGERS, k=chance.randrange(0, 4)),
    }


def _value(document: Document, path: str) -> Any:
    value = document[path]
    return datetime.fromisoformat(value) if path == "created" and value is not None else value


def _junction(word: str, left: Case, right: Case) -> Case:
    text = f"({left.text}) {word} ({right.text})"
    if word == "and":
        return Case(text, lambda document: left.predicate(document) and right.predicate(document))
    return Case(text, lambda document: left.predicate(document) or right.predicate(document))


def _compared(chance: random.Random, path: str, literal: str, operand: Any) -> Case:
    operator = chance.choice(list(_COMPARE))
    swapped = chance.random() < 0.2
    text = f"{literal} {_MIRROR[operator]} {path}" if swapped else f"{path} {operator} {literal}"

    def predicate(document: Document) -> bool:
        value = _value(document, path)
        if value is None:
            return operator == "ne"
        return _COMPARE[operator](value, operand)

    return Case(text, predicate)


def _string(chance: random.Random) -> Case:
    path = chance.choice(["name", "nullable_name", "id"])
    operand = chance.choice(STRINGS)
    return _compared(chance, path, quoted(operand), operand)


def _integer(chance: random.Random) -> Case:
    operand = chance.choice((*INTEGERS, 2**53 + 1))
    return _compared(chance, chance.choice(["rating", "views"]), str(operand), operand)


def _double(chance: random.Random) -> Case:
    operand = chance.choice(DOUBLES)
    literal = repr(operand) if "e" in repr(operand) else chance.choice([repr(operand), f"{operand:.4f}"])
    return _compared(chance, chance.choice(["price", "rating"]), literal, operand)


def _date(chance: random.Random) -> Case:
    operand = START + timedelta(minutes=chance.randrange(-5, 205))
    zone = chance.choice(["Z", "+00:00", "+05:30", "-08:00"])
    local_time = operand
    if zone not in ("Z", "+00:00"):
        sign = 1 if zone[0] == "+" else -1
        local_time = operand + sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return _compared(chance, "created", local_time.strftime("%Y-%m-%dT%H:%M:%S") + zone, operand)


def _boolean(chance: random.Random) -> Case:
    if chance.random() < 0.4:
        return Case("active", lambda document: document["active"] is True)
    operator, operand = chance.choice(["eq", "ne"]), chance.random() < 0.5
    literal = str(operand).lower()
    if operator == "eq":
        return Case(f"active eq {literal}", lambda document: document["active"] is operand)
    return Case(f"active ne {literal}", lambda document: document["active"] is not operand)


def _null(chance: random.Random) -> Case:
    path = chance.choice(["nullable_name", "rating", "price", "active", "created", "name"])
    if chance.random() < 0.5:
        return Case(f"{path} eq null", lambda document: _value(document, path) is None)
    return Case(f"{path} ne null", lambda document: _value(document, path) is not None)


def _listed(chance: random.Random) -> tuple[str, set[str]]:
    """Return the list and delimiter arguments of search.in, and the set of values in the list."""
    values = chance.choices(STRINGS, k=chance.randrange(1, 6))
    if chance.random() < 0.4:
        joined = chance.choice([",", " ", ", "]).join(values)
        return quoted(joined), {value for value in re.split("[ ,]", joined) if value}
    delimiters = chance.choice(["|", ",", ";|", "§"])
    joined = delimiters[0].join(values)
    pattern = "[" + re.escape(delimiters) + "]"
    return f"{quoted(joined)}, {quoted(delimiters)}", {value for value in re.split(pattern, joined) if value}


def _search_in(chance: random.Random) -> Case:
    path = chance.choice(["name", "nullable_name"])
    arguments, values = _listed(chance)
    return Case(f"search.in({path}, {arguments})", lambda document: _value(document, path) in values)


def _acl(chance: random.Random) -> Case:
    """Return the app's security filter, its negation, or a longer equivalent of either."""
    path = chance.choice(["allowed", "anyone"])
    kind = chance.randrange(5)
    if kind == 0:
        return Case(f"{path}/any()", lambda document: bool(document[path]))
    if kind == 1:
        arguments, values = _listed(chance)
        text = f"{path}/any(acl: search.in(acl, {arguments}))"
        return Case(text, lambda document: any(value in values for value in document[path]))
    principals = chance.choices(STRINGS, k=chance.randrange(1, 5))
    if kind == 2:
        body = " or ".join(f"g eq {quoted(value)}" for value in principals)
        return Case(
            f"{path}/any(g: {body})", lambda document: any(value in principals for value in document[path])
        )
    if kind == 3:
        body = " and ".join(f"g ne {quoted(value)}" for value in principals)
        return Case(
            f"{path}/all(g: {body})",
            lambda document: all(value not in principals for value in document[path]),
        )
    arguments, values = _listed(chance)
    text = f"{path}/all(g: not search.in(g, {arguments}))"
    return Case(text, lambda document: all(value not in values for value in document[path]))


def _numbers(chance: random.Random) -> Case:
    operator, operand = chance.choice(list(_COMPARE)), chance.choice(INTEGERS)
    compare = _COMPARE[operator]
    if chance.random() < 0.5:
        text = f"numbers/any(n: n {operator} {operand})"
        return Case(text, lambda document: any(compare(value, operand) for value in document["numbers"]))
    text = f"numbers/all(n: n {operator} {operand})"
    return Case(text, lambda document: all(compare(value, operand) for value in document["numbers"]))


_LEAVES: tuple[Callable[[random.Random], Case], ...] = (
    _string, _integer, _double, _date, _boolean, _null, _search_in, _acl, _acl, _numbers,
)  # fmt: skip
