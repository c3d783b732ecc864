"""Proving quotations. Pure: says whether a quotation stands verbatim in a block.

Unicode form, hyphenation at line ends and white space are normalised, typographic quotes and dashes are
unified; nothing looser: no case folding, no fuzzy match, no ellipsis.
"""

import re
import unicodedata

_CHARACTERS = str.maketrans(
    {
        "\u00ad": "",  # soft hyphen
        "\u200b": "",  # zero-width space
        "\u2060": "",
        "\ufeff": "",
        "\ufffe": "-",  # PDFium's mark for a hyphen at the end of a line
        "‘": "'",
        "’": "'",
        "‚": "'",
        "“": '"',
        "”": '"',
        "„": '"',
        "«": '"',
        "»": '"',
        "‐": "-",
        "‑": "-",
        "‒": "-",
        "–": "-",
        "—": "-",
        "−": "-",
    }
)
_LINE_END_HYPHEN = re.compile(r"(?<=[^\W\d_])-[ \t]*\r?\n[ \t]*(?=[^\W\d_])")  # letters on both sides
_WHITE_SPACE = re.compile(r"\s+")
_MIN_PROOF_CHARS = 8  # shorter quotations prove nothing, unless they hold a number


def normalise(text: str) -> str:
    """The form in which a quotation and a block are compared."""
    unified = unicodedata.normalize("NFKC", text).translate(_CHARACTERS)
    return _WHITE_SPACE.sub(" ", _LINE_END_HYPHEN.sub("", unified)).strip()


def is_verbatim(quote: str, content: str) -> bool:
    """Whether `quote` stands in `content`, whole words at both ends.

    Whole words, or "5 bar" would be proved by "15 bar". A quotation of under 8 characters without a digit
    is refused: it would be found anywhere.
    """
    wanted = normalise(quote)
    if len(wanted) < _MIN_PROOF_CHARS and not any(character.isdigit() for character in wanted):
        return False
    return _stands_in(wanted, normalise(content))


def _stands_in(wanted: str, text: str) -> bool:
    start = text.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        if not _splits_word(text, start) and not _splits_word(text, end):
            return True
        start = text.find(wanted, start + 1)
    return False


def _splits_word(text: str, position: int) -> bool:
    """Whether `position` lies between two word characters, or inside a number such as 1,200 or 3.5."""
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    if _is_word(before) and _is_word(after):
        return True
    inside_left = before in ".,-" and position >= 2 and text[position - 2].isdigit() and after.isdigit()
    inside_right = (
        after in ".," and before.isdigit() and position + 1 < len(text) and text[position + 1].isdigit()
    )
    return inside_left or inside_right


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
