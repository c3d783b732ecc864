"""Measures of an answer's text. Pure."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

_ARTICLES = frozenset({"a", "an", "the"})
_CITATION_MARK = re.compile(r"\[\d+\]")
# A picture with its source isn't part of the answer's words.
_PICTURE = re.compile(r"!\[[^\]\n]*\]\([^()\s]*\)(?: \(Source: (?:[^()\n]|\([^()\n]*\))*\))?")
_LINK_TARGET = re.compile(r"\]\([^()\s]*\)")
_WORD = re.compile(r"\d+(?:[.,]\d+)*|\w+")


def answer_token_f1(text: str, references: Iterable[str]) -> float:
    """Return the best token F1 of an answer against its references.

    Words are lower-cased, without articles, punctuation, citation marks, pictures and link targets; 1,577.00
    and 1577 are equal. Source: the evaluation script of SQuAD, except for numbers.
    """
    return max((_f1(_words(text), _words(reference)) for reference in references), default=0.0)


def percentile(values: Iterable[float], share: float) -> float | None:
    """Return the nearest-rank percentile of the values at `share` (0 to 1); None if there are no values."""
    ordered = sorted(values)
    if not ordered:
        return None
    rank = -(-len(ordered) * share // 1)  # rounded up
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
    """Normalise a number (1,577.00 -> 1577); return other words unchanged."""
    plain = word.replace(",", "")
    if not re.fullmatch(r"\d+(\.\d+)?", plain):
        return word
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
