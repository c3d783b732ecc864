"""Hyphens at line ends: real, or put there by the typesetter? The document's own words decide.

The joined word wins if it occurs elsewhere; else the hyphen stays if the hyphenated form, or both halves,
occur elsewhere; else the parts are joined.
"""

import re
from collections.abc import Iterable

from shared.ingestion.parsers.pdf_lines import HYPHEN_MARK

_WORD = re.compile(r"\w+(?:-\w+)*")
_BROKEN = re.compile(rf"(\w*){HYPHEN_MARK}\s*(\w*)")


class HyphenRule:
    """Knows the words of one document."""

    def __init__(self, texts: Iterable[str]) -> None:
        """`texts` is the whole document, marks and all."""
        whole = "\n".join(_BROKEN.sub(" ", text) if HYPHEN_MARK in text else text for text in texts)
        self._words = set(_WORD.findall(whole.lower()))
        self._words.update([part for word in self._words if "-" in word for part in word.split("-")])

    def mend(self, text: str) -> str:
        """The text without hyphen marks."""
        return _BROKEN.sub(self._decide, text) if HYPHEN_MARK in text else text

    def _decide(self, broken: re.Match[str]) -> str:
        left, right = broken[1], broken[2]
        joined, hyphenated = left + right, f"{left}-{right}"
        if not left or not right or not left[-1].isalpha() or not right[0].isalpha():
            return hyphenated
        if joined.lower() in self._words:
            return joined
        halves_known = left.lower() in self._words and right.lower() in self._words
        if hyphenated.lower() in self._words or halves_known or right[0].isupper():
            return hyphenated
        return joined
