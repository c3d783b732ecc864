"""Parser for the parts of the simple and the full query syntax that the application uses.

An unsupported operator is a 400 error. The simple syntax supports words with all operators escaped; the full
(Lucene) syntax supports words, prefixes, fuzzy words, phrases with slop, fields, parentheses, boosts, and a
plus before required clauses.
"""

import re
from dataclasses import dataclass
from typing import Final

from local.search_server.errors import RequestError

MAX_DEPTH: Final = 50
# Operators count anywhere in the text, but a minus must start a word and a star must end one.
_SIMPLE_OPERATOR: Final = re.compile(r"""(?:\\.)|(?P<found>[+|"()]|(?<!\S)-|\*(?!\S))""", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<plus>\+) | (?P<open>\() | (?P<close>\))
    | "(?P<phrase>(?:[^"\\]|\\.)*)"(?:~(?P<slop>\d+))?
    | (?P<field>[A-Za-z]\w*):
    | (?P<term>(?:[^\s!():^\[\]"{}~\\/*?+|&-]|\\.)(?:[^\s!():^\[\]"{}~\\*?|&]|\\.)*)
      (?:(?P<begun>\*)|~(?P<slips>[12]))?
    )(?:\^(?P<boost>\d+(?:\.\d+)?))?""",
    re.VERBOSE,
)
_WORDS_OF_LUCENE: Final = frozenset({"AND", "OR", "NOT"})


@dataclass(frozen=True)
class Words:
    """Plain text that the field's analyzer converts to terms."""

    text: str


@dataclass(frozen=True)
class Like:
    """A prefix (`slips` is None) or a fuzzy term with at most `slips` edits. The text is not analyzed."""

    text: str
    slips: int | None


@dataclass(frozen=True)
class Phrase:
    """Terms that must occur in this order, with at most `slop` moves of words."""

    text: str
    slop: int = 0


@dataclass(frozen=True)
class InField:
    path: str
    node: "QueryNode"


@dataclass(frozen=True)
class Boost:
    node: "QueryNode"
    factor: float


@dataclass(frozen=True)
class Group:
    """A sequence of (is_required, clause) pairs."""

    clauses: tuple[tuple[bool, "QueryNode"], ...]


QueryNode = Words | Like | Phrase | InField | Boost | Group


def parse_simple(text: str) -> QueryNode | None:
    """Parse a query in simple syntax. Return None if it matches every document.

    Raises:
        RequestError: 400, if an operator isn't escaped.
    """
    if text.strip() in ("", "*"):
        return None
    for operator in _SIMPLE_OPERATOR.finditer(text):
        if operator["found"]:
            raise RequestError(
                f"The operator '{operator['found']}' is not supported in simple syntax; escape it."
            )
    words = (_ESCAPED.sub(r"\1", word) for word in text.split())
    return Group(tuple((False, Words(word)) for word in words))


def parse_lucene(text: str) -> QueryNode | None:
    """Parse a query in full (Lucene) syntax. Return None if it matches every document.

    Raises:
        RequestError: 400, with the column of the error.
    """
    return None if text.strip() in ("", "*", "*:*") else _LuceneParser(text).group(depth=0)


class _LuceneParser:
    def __init__(self, text: str) -> None:
        self._text = text.rstrip()
        self._at = 0

    def group(self, depth: int) -> Group:
        """Parse clauses up to the end of the text or, if `depth` is positive, up to and including the closing
        parenthesis.
        """
        clauses: list[tuple[bool, QueryNode]] = []
        while self._at < len(self._text):
            token = self._next()
            if token["close"] and depth:
                return Group(tuple(clauses))
            is_required = token["plus"] is not None
            clauses.append((is_required, self._operand(self._next() if is_required else token, depth)))
        if depth:
            raise self._error()
        return Group(tuple(clauses))

    def _operand(self, token: re.Match[str], depth: int) -> QueryNode:
        if depth > MAX_DEPTH or token["plus"] or token["close"] or token["term"] in _WORDS_OF_LUCENE:
            raise self._error()
        if token["field"]:
            return InField(token["field"], self._operand(self._next(), depth + 1))
        if token["open"]:
            group = self.group(depth + 1)
            return _boost(group, self._last["boost"])
        return _boost(_leaf(token), token["boost"])

    def _next(self) -> re.Match[str]:
        token = _TOKEN.match(self._text, self._at)
        if token is None:
            raise self._error()
        self._last, self._at = token, token.end()
        return token

    def _error(self) -> RequestError:
        return RequestError(f"Failed to parse query string at line 1, column {self._at + 1}.")


def _leaf(token: re.Match[str]) -> QueryNode:
    if token["phrase"] is not None:
        return Phrase(_ESCAPED.sub(r"\1", token["phrase"]), int(token["slop"] or 0))
    text = _ESCAPED.sub(r"\1", token["term"])
    if token["begun"] or token["slips"]:
        return Like(text.lower(), int(token["slips"]) if token["slips"] else None)
    return Words(text)


def _boost(node: QueryNode, boost: str | None) -> QueryNode:
    return Boost(node, float(boost)) if boost else node
