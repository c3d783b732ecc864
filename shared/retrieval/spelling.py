"""Comparison of words that may be misspelt, by the number of typos between them. Pure."""

from collections.abc import Iterable

# Minimum number of letters for one typo, which often turns a shorter word into another ("plan", "plane").
ONE_SLIP_FROM = 5
TWO_SLIPS_FROM = 8


def slips_allowed(word: str) -> int:
    """Return how many typos are tolerated in a word: none in numbers and short words, two in long words."""
    if not word.isalpha() or len(word) < ONE_SLIP_FROM:
        return 0
    return 1 if len(word) < TWO_SLIPS_FROM else 2


def nearest(word: str, vocabulary: Iterable[str]) -> str | None:
    """Return the word in the vocabulary closest to a misspelt one, or None if none is close enough or several
    are equally close.

    The first letter must match: people rarely mistype it, and it excludes unrelated words.
    """
    allowed = slips_allowed(word)
    near = sorted(
        (slips, other)
        for other in set(vocabulary)
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
    """Return the edit distance of two words. Swapping adjacent letters counts as one edit (optimal string
    alignment).
    """
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        before, last, row = row, before, [i]
        for j, other_letter in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other_letter))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == other_letter:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
