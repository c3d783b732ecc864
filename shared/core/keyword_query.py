"""Keyword queries. The one place where what a person writes becomes a query in the simple syntax."""

import re

_ANYWHERE = re.compile(r"""([+|"()'\\])""")
_MINUS_FIRST = re.compile(r"(?<!\S)-")  # elsewhere it is part of a word: R-134a
_STAR_LAST = re.compile(r"\*(?!\S)")


def keyword_query(text: str) -> str:
    """A query for the words of `text`: signs that the simple syntax reads as operators are escaped.

    Unescaped, "-12 bar" would look for what does not hold 12, and a lone quotation mark or parenthesis would
    change how all that follows is read.
    Source: "Simple query syntax in Azure AI Search", the sections on special characters and on escaping.
    """
    escaped = _ANYWHERE.sub(r"\\\1", text)
    return _STAR_LAST.sub(r"\\*", _MINUS_FIRST.sub(r"\\-", escaped))
