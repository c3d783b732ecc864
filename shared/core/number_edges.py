"""Where a quotation may begin or end beside a number. Pure; works on text in the form of `quotes.normalise`.

A number is more than its digits: `500` of `1 500`, `5` of `-5`, `2` of `1/2` and `10` of `10^2` are other
numbers, and `5 m` of `5 m^2` or `5 m/s` is another quantity.
"""

import re

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
