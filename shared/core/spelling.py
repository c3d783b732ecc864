"""How many slips lie between two words, and which known word a misspelt one means. Pure."""

from collections.abc import Iterable

ONE_SLIP_FROM = 5  # letters; one slip in a shorter word is too often another word ("plan", "plane")
TWO_SLIPS_FROM = 8


def slips_allowed(word: str) -> int:
    """How many slips a word may hold and still be known: none in a number or a short word."""
    if not word.isalpha() or len(word) < ONE_SLIP_FROM:
        return 0
    return 1 if len(word) < TWO_SLIPS_FROM else 2


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a misspelt one means; None when there is none, or two are equally near.

    The first letter must be right: hardly anybody misses it, and it keeps other words away.
    """
    allowed = slips_allowed(word)
    near = sorted(
        (slips, other)
        for other in set(known)
        if allowed
        and slips_allowed(other)
        and other[0] == word[0]
        and abs(len(other) - len(word)) <= allowed
        and (slips := slips_between(word, other)) <= allowed
    )
    if not near or (len(near) > 1 and near[0][0] == near[1][0]):
        return None
    return near[0][1]


def slips_between(one: str, other: str) -> int:
    """Letters left out, added, replaced, or neighbours that changed places (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
