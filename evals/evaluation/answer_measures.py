"""Measures of the text of an answer. Pure."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

_ARTICLES = frozenset({"a", "an", "the"})
_CITATION_MARK = re.compile(r"\[\d+\]")
# Matches pictures and their source lines, which don't count as words of the answer.
_PICTURE = re.compile(r"!\[[^\]\n]*\]\([^()\s]*\)(?: \(Source: (?:[^()\n]|\([^()\n]*\))*\))?")
_LINK_TARGET = re.compile(r"\]\([^()\s]*\)")
_WORD = re.compile(r"\d+(?:[.,]\d+)*|\w+")


def answer_token_f1(text: str, references: Iterable[str]) -> float:
    """Return the token F1 score of an answer, compared with the reference that it matches best.

    Words are lower-cased, without articles, punctuation, citation marks, pictures and link targets; 1,577.00
    and 1577 are equal. Source: the evaluation script of SQuAD, except for numbers.
    """
    return max((_f1(_words(text), _words(reference)) for reference in references), default=0.0)


def percentile(values: Iterable[float], share: float) -> float | None:
    """Return a percentile of the values by the nearest-rank method, or None if there are no values. `share`
    is between 0 and 1.
    """
    ordered = sorted(values)
    if not ordered:
        return None
    # Round up.
    rank = -(-len(ordered) * share // 1)
    return ordered[max(int(rank), 1) - 1]


def _f1(words: Counter[str], reference: Counter[str]) -> float:
    common = (words & reference).total()
    if not common:
        return 0.0
    precision, recall = common / words.total(), common / reference.total()
    return 2 * precision * recall / (precision + recall)


def _words(text: str) -> Counter[str]:
    plain = _LINK_TARGET.sub("] ", _CITATION_MARK.sub(" ", _PICTURE.sub(" ", text)))
    folded = unicodedata.normalize("NFKC", plain).lower().replace("_", " ")
    words = (_number(word) for word in _WORD.findall(folded))
    return Counter(word for word in words if word not in _ARTICLES)


def _number(word: str) -> str:
    """Return a number without separators and trailing zeros (1,577.00 becomes 1577), and other words
    unchanged.
    """
    plain = word.replace(",", "")
    if not re.fullmatch(r"\d+(\.\d+)?", plain):
        return word
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
