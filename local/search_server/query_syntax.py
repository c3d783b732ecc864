"""The full Lucene query syntax: fields, boolean words, phrases with slop, fuzzy, wildcards, regexes, boosts.

Boolean words follow Lucene's classic parser: AND makes both neighbours required, NOT and `-` exclude, and
what has no operator is joined by the search mode. Ranges are refused, as in the service: use `$filter`.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from local.search_server.errors import RequestError


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
    """Terms of the index that match a regular expression as a whole. Not analyzed, only lower-cased."""

    regex: str


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


_OPERATORS: Final = {"+": Occur.MUST, "|": Occur.SHOULD}


_SKIPPED: Final = frozenset("+|-)")
_PHRASE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_WORD: Final = re.compile(r'(?:[^\s+|"()\\]|\\.)+', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
MAX_DEPTH: Final = 50  # deeper parentheses are read as if they were not there


def parse_simple(text: str, default: Occur) -> QueryNode:
    """The meaning of `text`; words without an operator between them are joined by `default`."""
    if text.strip() in ("", "*"):
        return MatchAll()
    node = _SimpleParser(text, default).parse(depth=0)
    return node if node is not None else Group(())


class _SimpleParser:
    def __init__(self, text: str, default: Occur) -> None:
        self._text = text
        self._at = 0
        self._default = default

    def parse(self, depth: int) -> QueryNode | None:
        """Read to the end, or to the parenthesis that closes this group."""
        result: QueryNode | None = None
        operator: Occur | None = None
        minus = False
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == ")" and depth:
                break
            if character in _OPERATORS:
                operator = operator or _OPERATORS[character]
            if character in _SKIPPED or character.isspace():
                # A minus counts only right before its operand.
                minus = character == "-"
                self._at += 1
                continue
            node = self._operand(depth)
            if node is not None:
                result = _join(result, negated(node) if minus else node, operator or self._default)
            operator, minus = None, False
        return result

    def _operand(self, depth: int) -> QueryNode | None:
        if self._text[self._at] == "(":
            self._at += 1
            node = self.parse(depth + 1) if depth < MAX_DEPTH else None
            self._at += 1 if depth < MAX_DEPTH else 0
            return node
        if self._text[self._at] == '"':
            return self._phrase()
        return self._word()

    def _phrase(self) -> QueryNode | None:
        phrase = _PHRASE.match(self._text, self._at)
        # A quote that nothing closes is no phrase.
        self._at = phrase.end() if phrase else self._at + 1
        return Phrase(_ESCAPED.sub(r"\1", phrase[1])) if phrase else None

    def _word(self) -> QueryNode | None:
        word = _WORD.match(self._text, self._at)
        if word is None:
            self._at += 1  # a backslash at the very end
            return None
        self._at = word.end()
        raw = word[0]
        text = _ESCAPED.sub(r"\1", raw)
        if raw.endswith("*") and not raw.endswith("\\*") and len(text) > 1:
            return Pattern(escape_regex(text[:-1]) + ".*")
        return Word(text)


def _join(left: QueryNode | None, right: QueryNode, operator: Occur) -> QueryNode:
    if left is None:
        return right
    if isinstance(left, Group) and left.clauses and all(clause.occur is operator for clause in left.clauses):
        return Group((*left.clauses, Clause(operator, right)))
    return Group((Clause(operator, left), Clause(operator, right)))


_TOKEN: Final = re.compile(
    r"""
    \s*(?:
      (?P<and>AND(?=[\s(]|$)|&&) | (?P<or>OR(?=[\s(]|$)|\|\|) | (?P<not>NOT(?=[\s(]|$)|!|-) | (?P<plus>\+)
    | (?P<open>\() | (?P<close>\))
    | "(?P<phrase>(?:[^"\\]|\\.)*)"(?:~(?P<slop>\d+))?
    | /(?P<regex>(?:[^/\\]|\\.)+)/
    | (?P<field>[A-Za-z][\w/]*):
    | (?P<term>(?:[^\s!():^\[\]"{}~\\/]|\\.)(?:[^\s!():^\[\]"{}~\\]|\\.)*)(?P<fuzzy>~(?:\d+(?:\.\d+)?)?)?
    )(?P<boost>\^\d+(?:\.\d+)?)?
    """,
    re.VERBOSE,
)


def parse_lucene(text: str, default: Occur) -> QueryNode:
    """The meaning of `text`.

    Raises:
        RequestError: 400, with the column where reading failed.
    """
    if text.strip() in ("", "*", "*:*"):
        return MatchAll()
    return _LuceneParser(text, default).group(depth=0)


class _LuceneParser:
    def __init__(self, text: str, default: Occur) -> None:
        self._text = text.rstrip()
        self._at = 0
        self._default = default

    def group(self, depth: int) -> Group:
        """Clauses up to the end or, inside parentheses, up to the closing one (the caller takes it)."""
        clauses: list[Clause] = []
        joined_by: str | None = None
        occur: Occur | None = None
        while (token := self._next()) is not None:
            kind = token.lastgroup if token.lastgroup != "boost" else _kind(token)
            if kind == "close":
                if depth == 0:
                    raise self._error()
                break
            self._at = token.end()
            if kind in ("and", "or"):
                joined_by = kind
            elif kind in ("not", "plus"):
                occur = Occur.MUST_NOT if kind == "not" else Occur.MUST
            else:
                node = self._operand(token, depth)
                self._add(clauses, node, joined_by, occur)
                joined_by, occur = None, None
        if joined_by or occur:
            raise self._error()
        return Group(tuple(clauses))

    def _operand(self, token: re.Match[str], depth: int) -> QueryNode:
        if depth > MAX_DEPTH:
            raise RequestError("Failed to parse query string: nested too deeply.")
        if token["field"]:
            return self._in_field(token["field"], depth)
        if token["open"]:
            node: QueryNode = self.group(depth + 1)
            token = self._close()
        else:
            node = _leaf(token)
        return Boost(node, float(token["boost"][1:])) if token["boost"] else node

    def _in_field(self, path: str, depth: int) -> QueryNode:
        token = self._next()
        if token is None or _kind(token) not in ("term", "phrase", "regex", "open"):
            raise self._error()
        self._at = token.end()
        return InField(path, self._operand(token, depth + 1))

    def _add(
        self, clauses: list[Clause], node: QueryNode, joined_by: str | None, given: Occur | None
    ) -> None:
        """Append as the classic parser does: a word between two clauses can change the one before it, too."""
        occur = given or self._default
        if clauses and joined_by:
            changes_previous = joined_by == "and" or self._default is Occur.MUST
            wanted = Occur.MUST if joined_by == "and" else Occur.SHOULD
            if changes_previous and clauses[-1].occur is not Occur.MUST_NOT:
                clauses[-1] = Clause(wanted, clauses[-1].node)
            occur = given or wanted
        clauses.append(Clause(occur, node))

    def _close(self) -> re.Match[str]:
        token = self._next()
        if token is None or not token["close"]:
            raise self._error()
        self._at = token.end()
        return token

    def _next(self) -> re.Match[str] | None:
        if self._at >= len(self._text):
            return None
        token = _TOKEN.match(self._text, self._at)
        if token is None:
            raise self._error()
        return token

    def _error(self) -> RequestError:
        return RequestError(
            f"Failed to parse query string at line 1, column {self._at + 1}. See https://aka.ms/azure-search-full-query"
            " for supported syntax."
        )


def _kind(token: re.Match[str]) -> str:
    names = ("and", "or", "not", "plus", "open", "close", "phrase", "regex", "field", "term")
    return next(name for name in names if token[name] is not None)


def _leaf(token: re.Match[str]) -> QueryNode:
    if token["phrase"] is not None:
        return Phrase(_unescape(token["phrase"]), int(token["slop"] or 0))
    if token["regex"] is not None:
        return Pattern(token["regex"].replace("\\/", "/"))
    raw = token["term"]
    if token["fuzzy"]:
        return Fuzzy(_unescape(raw), _distance(token["fuzzy"][1:], len(raw)))
    plain = re.sub(r"\\.", "", raw)
    if raw == "*":
        return MatchAll()
    if "*" in plain or "?" in plain:
        return Pattern(wildcard_regex(raw.replace("\\", "")))
    return Word(_unescape(raw))


def _distance(text: str, length: int) -> int:
    """Edits allowed. A fraction is Lucene's old similarity: the share of letters that must stay."""
    if not text:
        return 2
    number = float(text)
    if number < 1:
        return min(2, int((1 - number) * length))
    if number not in (1, 2):
        raise RequestError("Failed to parse query string: the fuzzy distance must be 0, 1 or 2.")
    return int(number)


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
