"""Proving quotations. Pure: says whether a quotation stands verbatim in a block.

Unicode form, invisible characters, hyphenation at line ends and white space are normalised, typographic
quotes and dashes are unified; nothing looser: no case folding, no fuzzy match, no ellipsis.
"""

import re
import unicodedata

_REACH = 12  # characters looked at on either side of an edge; longer runs of digits are no groups of three
_BOUND_BEFORE = re.compile(r"(?:[-+±∓/.,^]|\d[':])\Z")  # what belongs to the number that follows it
_GROUP_BEFORE = re.compile(r"(?<!\d)\d{1,3} \Z")
_GROUP = re.compile(r"\d{3}(?!\d)")
_MIXED_BEFORE = re.compile(r"\d \Z")
_FRACTION = re.compile(r"\d+/\d")
_LAST_GROUP = re.compile(r"(?<!\d)\d{1,3}\Z")
_BOUND_AFTER = re.compile(r"[-/.,':]\d|\^[-+\d]")
_CUT_NUMBER = re.compile(r"\d[-+/.,':^]\Z")
_QUANTITY = re.compile(r"\d ?[^\W\d_]{1,4}\Z")
_SHORT_QUANTITY = re.compile(r"\d ?[^\W\d_]{1,2}\Z")
_POWER = re.compile(r"\^[-+2-9]")  # after a unit; a ^1 is the mark of a footnote


def splits_number(text: str, position: int) -> bool:
    """Whether cutting `text` at `position` leaves another number or quantity than the one written."""
    before = text[max(0, position - _REACH) : position]
    after = text[position : position + _REACH]
    if not before or not after:
        return False
    return (
        _takes_from_start(before, after)
        or _takes_from_end(before, after)
        or bool(_CUT_NUMBER.search(before) and after[0].isdigit())
    )


def _takes_from_start(before: str, after: str) -> bool:
    """Whether the number that begins at the edge has a part before it."""
    if not after[0].isdigit():
        return False
    return bool(
        _BOUND_BEFORE.search(before)
        or (_GROUP_BEFORE.search(before) and _GROUP.match(after))
        or (_MIXED_BEFORE.search(before) and _FRACTION.match(after))
    )


def _takes_from_end(before: str, after: str) -> bool:
    """Whether the number or quantity that ends at the edge goes on after it."""
    if before[-1].isdigit():
        grouped = after[0] == " " and _LAST_GROUP.search(before) and _GROUP.match(after[1:])
        mixed = after[0] == " " and _FRACTION.match(after[1:])
        return bool(_BOUND_AFTER.match(after) or grouped or mixed)
    per = after[0] == "/" and after[1:2].isalpha()
    return bool(
        (per and _QUANTITY.search(before)) or (_POWER.match(after) and _SHORT_QUANTITY.search(before))
    )


_CHARACTERS = str.maketrans(
    {
        "\x02": "-",  # older PDFium's mark for a hyphen at the end of a line
        "\ufffe": "-",  # PDFium's mark for the same
        "\u2044": "/",
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

_BREAK = "\x02"  # a hyphen at the end of a line, before a letter: it may belong to the word or not
_SOFT_BREAK = re.compile(r"\u00ad[ \t]*\r?\n[ \t]*")
_LINE_END_HYPHEN = re.compile(r"(?<=[^\W_])-[ \t]*\r?\n[ \t]*(?=[^\W\d_])")  # 24-hour, but not 10-20
_WHITE_SPACE = re.compile(r"\s+")

# NFKC makes 102 of 10², and 11/2 of 1½: these get forms of their own first.
_SUPERSCRIPTS = re.compile("[⁰¹²³⁴-⁹⁺⁻ⁿ]+")
_FRACTION_AFTER_DIGIT = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅟↉])")
_MARK_AFTER_DIGIT = re.compile(r"(?<=\d)(?=[₀-₉①-⒛⓪-⓿❶-➓])")
_MIN_PROOF_CHARS = 8  # shorter quotations prove nothing, unless they hold a number with its unit
_NEGATION = re.compile(r"(?<!\w)(?:non|nicht)-\Z", re.IGNORECASE)
_UNIT_SIGNS = "%‰°"


def normalise(text: str) -> str:
    """The form in which quotations are compared with each other."""
    return _unified(text).replace(_BREAK, "")


def is_verbatim(quote: str, content: str) -> bool:
    """Whether `quote` stands in `content`, whole words and whole numbers at both ends.

    Whole words, or "5 bar" would be proved by "15 bar". A quotation of under 8 characters that is no number
    with a unit or a word is refused: it would be found anywhere.
    """
    wanted = _unified(quote)
    if not _proves_something(wanted.replace(_BREAK, "")):
        return False
    text = _unified(content)
    return any(
        not _splits_word(text, found.start(1)) and not _splits_word(text, found.end(1))
        for found in _either_hyphenation(wanted).finditer(text)
    )


def _unified(text: str) -> str:
    """`text` in its comparable form, line-end hyphens as `_BREAK`."""
    text = _SOFT_BREAK.sub("", text)
    invisible = {ord(character): None for character in set(text) if unicodedata.category(character) == "Cf"}
    text = _SUPERSCRIPTS.sub(lambda found: "^" + found[0], text.translate(invisible))
    text = _MARK_AFTER_DIGIT.sub("_", _FRACTION_AFTER_DIGIT.sub(" ", text))
    unified = unicodedata.normalize("NFKC", text).translate(_CHARACTERS)
    return _WHITE_SPACE.sub(" ", _LINE_END_HYPHEN.sub(_BREAK, unified)).strip()


def _proves_something(wanted: str) -> bool:
    if len(wanted) >= _MIN_PROOF_CHARS:
        return any(character.isalnum() for character in wanted)
    has_digit = any(character.isdigit() for character in wanted)
    return has_digit and any(_is_letter_or_unit(character) for character in wanted)


def _is_letter_or_unit(character: str) -> bool:
    return character.isalpha() or character in _UNIT_SIGNS or unicodedata.category(character) == "Sc"


def _either_hyphenation(wanted: str) -> re.Pattern[str]:
    """Finds `wanted`, at every position, where a break of the text stands for a hyphen or for nothing."""
    parts = []
    for before, character in zip(" " + wanted, wanted, strict=False):
        if character == _BREAK:
            parts.append(f"[-{_BREAK}]?")
            continue
        if before.isalpha() and character.isalpha():
            parts.append(f"{_BREAK}?")
        parts.append(f"[-{_BREAK}]" if character == "-" else re.escape(character))
    # Inside a lookahead, so that overlapping places are found too.
    return re.compile(f"(?=({''.join(parts)}))")


def _splits_word(text: str, position: int) -> bool:
    """Whether `position` lies between two word characters, before an accent, or inside a number."""
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    if _is_word(after) and _is_word(before):
        return True
    if _NEGATION.search(text[max(0, position - 7) : position]):
        return True
    if after == _BREAK or before == _BREAK or unicodedata.category(after).startswith("M"):
        return True
    return splits_number(text, position)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
