"""Checks whether a quotation occurs on a page. Pure, and deliberately independent of the app's code.

Differences that any two correct readings of a page may have are removed from both texts: whitespace, hyphens
within words, shapes of quotation marks and dashes, ligatures, leaders and Markdown. Letters, digits, signs of
numbers, case and order are compared.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Protocol

_TABLE_SIGN = "|"
_OMISSION = " … "
_RULE_OF_TABLE = re.compile(r"^[\s|:-]+$")
_QUOTES = dict.fromkeys('‘’‚‛“”„‟«»‹›"`´′″', "'")
# PDFium writes U+FFFE and U+0002 for hyphens.
_DASHES = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufffe\u0002", "-")
_SIGNS = str.maketrans({**_QUOTES, **_DASHES, "\u00ad": "-"})
_BULLET = re.compile(r"^\s*(?:[-*+•▪●◦·]\s+)+", re.MULTILINE)
# Hyphens between letters are ignored, because they may belong to the word or result from hyphenation.
_WORD_HYPHEN = re.compile(r"(?<=[^\W\d_])-\s*(?=[^\W\d_])")
_LEFT_OUT = re.compile(r"[\s\u200b-\u200f\u2028-\u202f\u2060\ufeff\ufffd*_#\\|•▪●◦·]|\.{2,}")


def bare(text: str) -> str:
    """Normalise a text for comparison: remove whitespace, Markdown syntax, and hyphens within words."""
    signs = unicodedata.normalize("NFKC", text.translate(_SIGNS)).translate(_SIGNS)
    return _LEFT_OUT.sub("", _WORD_HYPHEN.sub("", _BULLET.sub("", signs)))


class Page(Protocol):
    """A page in which quotations can be looked up."""

    def holds(self, letters: str) -> bool:
        """Return whether the page contains this text without gaps. The text must be normalised by `bare`."""
        ...


@dataclass(frozen=True)
class PlainPage:
    """A page with a known reading order. Its text is normalised by `bare`."""

    letters: str

    def holds(self, letters: str) -> bool:
        return letters in self.letters


def occurs_on(quote: str, page: Page) -> bool:
    """Return whether the page contains the quotation verbatim.

    If the quotation has omissions or several lines, each part must occur. If it is a Markdown table, each
    cell must occur, because a page may be read by columns. A quotation without letters or digits never
    occurs.
    """
    parts = quote.split(_OMISSION)
    if len(parts) > 1:
        return all(occurs_on(part, page) for part in parts)
    rows = [row for row in quote.splitlines() if not _RULE_OF_TABLE.match(row)]
    whole = bare("\n".join(rows))
    if not whole:
        return False
    if page.holds(whole):
        return True
    if _TABLE_SIGN not in quote:
        return len(rows) > 1 and all(page.holds(bare(row)) for row in rows)
    cells = [bare(cell) for row in rows for cell in row.split(_TABLE_SIGN)]
    return all(page.holds(cell) for cell in cells if cell)
