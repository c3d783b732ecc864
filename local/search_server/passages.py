"""Sentences of a text, and its terms. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from local.search_server import analyzers

MAX_PASSAGE_CHARS: Final = 400
_BREAK: Final = re.compile(r"(?<=[.!?…])\s+|\n+")


def passages(text: str) -> Iterator[str]:
    """Sentences in order, stripped; a very long one is cut between words."""
    for sentence in _BREAK.split(text):
        rest = sentence.strip()
        while len(rest) > MAX_PASSAGE_CHARS:
            cut = rest.rfind(" ", 0, MAX_PASSAGE_CHARS)
            cut = cut if cut > 0 else MAX_PASSAGE_CHARS
            yield rest[:cut]
            rest = rest[cut:].strip()
        if rest:
            yield rest


def terms_of(text: str, analyzer_name: str) -> list[str]:
    return analyzers.analyzer(analyzer_name).analyze(text)
