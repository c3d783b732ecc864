"""Whether a quotation stands on a page. Pure, and on purpose no code of the app: two readings, one truth.

Both texts lose all that two honest readings of the same page may differ in: white space, hyphens within a
word, the shape of quotation marks and dashes, ligatures, leaders, Markdown's signs. Letters, digits, signs of
numbers, case and their order stay.
"""

import re
import unicodedata

_TABLE_SIGN = "|"
_RULE_OF_TABLE = re.compile(r"^[\s|:-]+$")
_QUOTES = dict.fromkeys('‘’‚‛“”„‟«»‹›"`´′″', "'")
_DASHES = dict.fromkeys(
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufffe\u0002", "-"
)  # U+FFFE, U+0002: PDFium
_SIGNS = str.maketrans({**_QUOTES, **_DASHES, "\u00ad": "-"})
_BULLET = re.compile(r"^\s*(?:[-*+•▪●◦·]\s+)+", re.MULTILINE)
# A hyphen between letters may be the writer's, or the line's end: nobody can tell afterwards.
_WORD_HYPHEN = re.compile(r"(?<=[^\W\d_])-\s*(?=[^\W\d_])")
_LEFT_OUT = re.compile(r"[\s\u200b-\u200f\u2028-\u202f\u2060\ufeff\ufffd*_#\\|•▪●◦·]|\.{2,}")


def bare(text: str) -> str:
    """The text as it is compared."""
    signs = unicodedata.normalize("NFKC", text.translate(_SIGNS)).translate(_SIGNS)
    return _LEFT_OUT.sub("", _WORD_HYPHEN.sub("", _BULLET.sub("", signs)))


def stands_in(quote: str, page: str) -> bool:
    """Whether the quotation is verbatim on the page, given as `bare` text.

    Of a table written in Markdown every cell must be there: a page's own reading may go by columns. A
    quotation of which nothing is left stands nowhere.
    """
    rows = [row for row in quote.splitlines() if not _RULE_OF_TABLE.match(row)]
    whole = bare("\n".join(rows))
    if not whole:
        return False
    if whole in page:
        return True
    if _TABLE_SIGN not in quote:
        return False
    cells = [bare(cell) for row in rows for cell in row.split(_TABLE_SIGN)]
    return all(cell in page for cell in cells if cell)
