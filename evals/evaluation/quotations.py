"""Check that a quotation occurs on a page. Pure, and deliberately without code of the app.

Both texts are stripped of differences between two honest readings of a page: white space, hyphens within
words, shapes of quotation marks and dashes, ligatures, leaders, Markdown. Letters, digits, signs of numbers,
case and order remain.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Protocol

_TABLE_SIGN = "|"
_OMISSION = " … "
_RULE_OF_TABLE = re.compile(r"^[\s|:-]+$")
_QUOTES = dict.fromkeys('‘’‚‛“”„‟«»‹›"`´′″', "'")
_DASHES = dict.fromkeys(
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufffe\u0002", "-"
)  # U+FFFE, U+0002: PDFium
_SIGNS = str.maketrans({**_QUOTES, **_DASHES, "\u00ad": "-"})
_BULLET = re.compile(r"^\s*(?:[-*+•▪●◦·]\s+)+", re.MULTILINE)
# A hyphen between letters may be the author's or hyphenation; they are indistinguishable.
_WORD_HYPHEN = re.compile(r"(?<=[^\W\d_])-\s*(?=[^\W\d_])")
_LEFT_OUT = re.compile(r"[\s\u200b-\u200f\u2028-\u202f\u2060\ufeff\ufffd*_#\\|•▪●◦·]|\.{2,}")


def bare(text: str) -> str:
    """Return the text without white space, Markdown and hyphens within words, for comparison."""
    signs = unicodedata.normalize("NFKC", text.translate(_SIGNS)).translate(_SIGNS)
    return _LEFT_OUT.sub("", _WORD_HYPHEN.sub("", _BULLET.sub("", signs)))


class Page(Protocol):
    """A page as read."""

    def holds(self, letters: str) -> bool:
        """Return whether these letters (`bare` text) occur on it contiguously."""
        ...


@dataclass(frozen=True)
class PlainPage:
    """A page with known text order, as `bare` text."""

    letters: str

    def holds(self, letters: str) -> bool:
        return letters in self.letters


def stands_in(quote: str, page: Page) -> bool:
    """Return whether the quotation is verbatim on the page.

    Each part of a quotation with omissions or several lines must occur, and each cell of a Markdown table,
    because a page may be read by columns. A quotation without letters occurs nowhere.
    """
    parts = quote.split(_OMISSION)
    if len(parts) > 1:
        return all(stands_in(part, page) for part in parts)
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
