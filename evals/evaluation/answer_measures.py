"""Measures of an answer's words. Pure."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

_ARTICLES = frozenset({"a", "an", "the"})
_CITATION_MARK = re.compile(r"\[\d+\]")
# A picture with its source: shown beside the answer, no words of it.
_PICTURE = re.compile(r"!\[[^\]\n]*\]\([^()\s]*\)(?: \(Source: (?:[^()\n]|\([^()\n]*\))*\))?")
_LINK_TARGET = re.compile(r"\]\([^()\s]*\)")
_WORD = re.compile(r"\d+(?:[.,]\d+)*|\w+")


def answer_token_f1(text: str, references: Iterable[str]) -> float:
    """Best F1 of the words of an answer against any of its references, each word as often as it occurs.

    Words are in lower case, without articles, punctuation, citation marks, pictures and link targets;
    1,577.00 and 1577 are one word. Source: the evaluation script of SQuAD, but for numbers.
    """
    return max((_f1(_words(text), _words(reference)) for reference in references), default=0.0)


def percentile(values: Iterable[float], share: float) -> float | None:
    """The smallest value that at least `share` (0 to 1) of the values do not exceed; None of no values."""
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
    """1,577.00 -> 1577; anything that is no number stays."""
    plain = word.replace(",", "")
    if not re.fullmatch(r"\d+(\.\d+)?", plain):
        return word
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
