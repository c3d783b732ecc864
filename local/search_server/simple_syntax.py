"""The simple query syntax: `+` and, `|` or, `-` not, `"phrase"`, `prefix*`, `( )`, backslash. Never fails.

Operators go left to right, as in Lucene's SimpleQueryParser: `a + b | c` is `(a and b) or c`. With searchMode
any, a lone `-word` means "or without the word", which is what the service documents.
"""

import re
from typing import Final

from local.search_server.query_nodes import (
    Clause,
    Group,
    MatchAll,
    Occur,
    Pattern,
    Phrase,
    QueryNode,
    Word,
    escape_regex,
    negated,
)

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
