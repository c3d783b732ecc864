"""What a full-text query means, whichever syntax it was written in. Pure values."""

from dataclasses import dataclass
from enum import Enum


class Occur(Enum):
    SHOULD = "should"
    MUST = "must"
    MUST_NOT = "must not"


@dataclass(frozen=True)
class MatchAll:
    """Every document, with score 1."""


@dataclass(frozen=True)
class Word:
    """Text that the field's analyzer turns into terms."""

    text: str


@dataclass(frozen=True)
class Phrase:
    """Terms in this order, with at most `slop` moves between them."""

    text: str
    slop: int = 0


@dataclass(frozen=True)
class Pattern:
    """Terms of the index that match a regular expression as a whole. Not analyzed, only lower-cased.

    A `handwritten` one is the caller's own; others come from prefixes and wildcards.
    """

    regex: str
    handwritten: bool = False


@dataclass(frozen=True)
class Fuzzy:
    """Terms within an edit distance of 0 to 2."""

    text: str
    distance: int


@dataclass(frozen=True)
class InField:
    path: str
    node: "QueryNode"


@dataclass(frozen=True)
class Boost:
    node: "QueryNode"
    factor: float


@dataclass(frozen=True)
class Clause:
    occur: Occur
    node: "QueryNode"


@dataclass(frozen=True)
class Group:
    clauses: tuple[Clause, ...]


QueryNode = MatchAll | Word | Phrase | Pattern | Fuzzy | InField | Boost | Group

_SPECIAL = frozenset("\\.+*?()|[]{}^$#&-~")


def escape_regex(text: str) -> str:
    """Text as a pattern that matches only itself, in the dialect of the term dictionary."""
    return "".join("\\" + character if character in _SPECIAL else character for character in text)


def wildcard_regex(text: str) -> str:
    """`*` for any characters, `?` for one."""
    pieces = {"*": ".*", "?": "."}
    return "".join(pieces.get(character) or escape_regex(character) for character in text)


def negated(node: QueryNode) -> Group:
    """All documents but those of `node`; alone a negation would match nothing."""
    return Group((Clause(Occur.MUST_NOT, node), Clause(Occur.MUST, MatchAll())))
