"""The text of an OData `$filter` to a syntax tree, or a 400. odata-query's grammar, with corrections."""

from collections.abc import Callable
from typing import Any, Final

from odata_query import ast
from odata_query.exceptions import ODataException
from odata_query.grammar import ODataLexer, ODataParser

from local.search_server.errors import RequestError

Node = ast._Node

MAX_FILTER_CHARS: Final = 1_000_000  # unmeasured; the service stops at 16 MB for the whole request


def _pattern(rule: Callable[..., Any], pattern: str) -> Callable[..., Any]:
    """A copy of a lexer rule that applies to another pattern."""

    def bounded(lexer: object, token: object) -> object:
        return rule(lexer, token)

    bounded.pattern = pattern  # type: ignore[attr-defined]
    return bounded


class FilterLexer(ODataLexer):
    """The grammar's lexer takes `allowed` for `all` + `owed`; here keywords end where the word ends."""

    tokens = ODataLexer.tokens
    ANY = _pattern(ODataLexer.ANY, r"any(?!\w)")
    ALL = _pattern(ODataLexer.ALL, r"all(?!\w)")
    NULL = _pattern(ODataLexer.NULL, r"null(?!\w)")
    BOOLEAN = _pattern(ODataLexer.BOOLEAN, r"(?:true|false)(?!\w)")
    # `not(…)` without a space is valid OData.
    NOT = _pattern(ODataLexer.NOT, r"not(?:\s+|(?=\())")


def parse_filter(text: str) -> Node:
    """The syntax tree of a filter.

    Raises:
        RequestError: 400, the text is no filter.
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
